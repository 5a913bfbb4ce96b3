import type { Mutant } from '../mutants/mutant.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'Postgres: a record is written although it has changed since it was read',
    find: `AND t.token = r.token AND t.state = r.state AND t.uncertain = r.uncertain
        AND t.lease_until IS NOT DISTINCT FROM r.lease_until AND t.expires_at = r.expires_at`,
    replace: '',
    check: 'S1',
  },
]

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'races' }))
