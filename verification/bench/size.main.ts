// npm run size: what a bundler would ship of each entry.
import { measureSizes } from './sections/sizes.js'
import { asText } from './table.js'

const { table, withMemoryBytes } = await measureSizes()
console.log(asText(table))
console.log(`once-per-key + memory, minified and gzipped: ${withMemoryBytes} bytes`)
