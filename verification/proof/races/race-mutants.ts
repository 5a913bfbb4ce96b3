import type { Mutant } from '../mutants/mutant.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'Postgres: a record is written although it has changed since it was read',
    find: "'t.id {=} :id AND t.token {=} :seen AND t.revision {=} :revision AND t.expires_at {=} :expiresAt'",
    replace: "'t.id {=} :id'",
    check: 'S1',
  },
]

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'races' }))
