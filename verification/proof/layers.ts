import type { Layer } from './layer.js'

/** The layers by name, each loaded only where it runs. */
export const LAYERS = {
  explore: async () => (await import('./explore/explore.js')).explore,
  simulate: async () => (await import('./simulate/simulate.js')).simulate,
  model: async () => (await import('./model/model.js')).model,
  fuzz: async () => (await import('./fuzz/fuzz.js')).fuzz,
  soak: async () => (await import('./soak/soak.js')).soak,
  chaos: async () => (await import('./chaos/chaos.js')).chaos,
  races: async () => (await import('./races/races.js')).races,
  commit: async () => (await import('./commit/commit.js')).commit,
} as const satisfies Record<string, () => Promise<Layer>>

export type LayerName = keyof typeof LAYERS
