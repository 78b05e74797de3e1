"""The model: a finite Markov decision process, its graph, its policies and their occupancies."""
