"""Problems restricted to landmarks: how they are chosen, and what is solved with them."""
