"""The exit codes of the command, besides 0 for success.

2: bad input or usage, or output that cannot be written. 3: the command ran, but the search did not converge, a check of
the verification failed or a trial of a study failed. 130: interrupted.
"""

from __future__ import annotations

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130
