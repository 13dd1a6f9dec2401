"""The service: studies submitted, watched, cancelled and read over HTTP, and pages for people.

settings                         what a service is told when it starts
tokens, safety                   who may do what, from where; what every answer says of itself
work                             the queue: processes that train what was submitted
studies                          what is done with studies, for whoever asks
found                            what stands in a report, kept for as long as nothing new is known
streams                          events as they happen, for many listeners
routes, metrics                  /api/v1, /health, /ready, /metrics
web                              the pages
app                              all of it as one application; serving it
"""
