import { MemoryStore } from 'once-per-key/memory'
import { type Gate, gate } from './gate.js'

/** A memory store whose completions wait: `completing` opens when one has come, and `stored` lets them go on. */
export function createPausedStore(): { store: MemoryStore; completing: Gate; stored: Gate } {
  const completing = gate()
  const stored = gate()
  class PausedStore extends MemoryStore {
    override async complete(...command: Parameters<MemoryStore['complete']>) {
      completing.open()
      await stored.opened
      return super.complete(...command)
    }
  }
  return { store: new PausedStore(), completing, stored }
}
