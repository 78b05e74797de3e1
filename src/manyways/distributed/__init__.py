"""Planning for models larger than one machine: PETSc over MPI. Each process has a part of the model; docs/scaling.md."""
