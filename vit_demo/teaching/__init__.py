"""Classes of one's own from a few pictures: the head of a network, computed in closed form."""
