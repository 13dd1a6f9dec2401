"""The work of the service: processes that train what was submitted, and the plans of what is not yet."""
