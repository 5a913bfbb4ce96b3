import { MemoryStore } from 'once-per-key/memory'

export const store = new MemoryStore({ maxBytes: 256 * 2 ** 20 })
