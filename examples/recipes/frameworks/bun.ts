import { createPayout } from './fetch.js'
import { once } from './once.js'

declare const Bun: { serve(options: object): unknown }

Bun.serve({ routes: { '/payouts': { POST: once(createPayout) } } })
