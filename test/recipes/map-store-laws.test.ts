// Its tests are the example's own: the store laws, on the store that the pages show.
import '../../examples/map-store-laws.js'
