import type { Mutant } from '../mutants/mutant.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'a stale owner completes in its transaction',
    find: "AND t.token = p_token AND t.state = 'in-flight' AND now < t.expires_at;",
    replace: "AND t.state = 'in-flight' AND now < t.expires_at;",
    check: 'S6',
  },
  {
    name: 'a COMMIT without a reply counts as committed',
    find: 'if (isOpen && (await transaction.resolve())) return value as Value',
    replace: 'if (isOpen) return transaction.committed(), value as Value',
    check: 'S3',
  },
  {
    name: 'an answer leaves before its COMMIT',
    find: `    progress = 'completed'
  }`,
    replace: `    progress = 'completed'
    transaction.committed()
  }`,
    check: 'S3',
  },
  {
    name: 'what a transaction of a sealed store completes is not sealed',
    find: 'asKept(around.store, key, fingerprint, around.toKeep(key, fingerprint, answer))',
    replace: 'asKept(around.store, key, fingerprint, answer)',
    check: 'S13',
    scale: 0.01,
  },
]

export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'commit' }))
