"""Tables and other sources of numbers, and the observations drawn from them."""
