"""The live page of `manyways serve`: look at plans, plan again, keep, name, star, note and choose.

`events` and `store` keep what people say about plans, `planner` and `worker` plan in a separate process, `session`
answers the requests of the page, `app` and `guard` speak HTTP, `connections` ends idle ones, and `server` listens.
"""
