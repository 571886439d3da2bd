"""What the learners share: parameters, labels, control of long runs, the origin, support vectors."""
