"""What is done to studies from outside: cancelled, watched, resumed, deleted, and what nobody needs cleaned away."""
