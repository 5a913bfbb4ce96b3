// The recipe is a test: it runs as it stands there.
import '../../examples/recipes/expect-once.js'
