"""The pages of the service: rendered here, readable without scripts, live with them."""
