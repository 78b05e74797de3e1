"""The live page of `manyways serve`: look at plans, plan again, keep, name, star, note and choose.

`events` and `store` keep what people say about plans, `planner` and `worker` plan in a separate process, `session` and
`rounds` answer the requests of the page and of choosing by rounds, `app` and `guard` speak HTTP, `connections` ends idle ones, and `server` listens.
"""
