"""The live page: people look at plans, have them planned again, keep, name, star, note and choose.

`store` keeps what they say, `worker` plans in a process of its own, `desk` joins the two, `app` and `guard` speak
HTTP, `serving` listens.
"""
