import type { KeyStorage } from '../../examples/recipes/client.js'

/** A browser's storage: it outlives the page, and so the client. */
export function keyStorage(): KeyStorage & { readonly all: Map<string, string> } {
  const all = new Map<string, string>()
  return {
    all,
    getItem: (name) => all.get(name) ?? null,
    setItem: (name, value) => void all.set(name, value),
    removeItem: (name) => void all.delete(name),
  }
}
