// The recipe is tests: they run as they stand there.
import '../../examples/recipes/testing.js'
