/** What must hold for one (scope, key), whatever fails and in whatever order. Each layer says which of them it checks. */
export const CHECKS = {
  S1: 'no claim while the lease of another owner is unexpired and unreleased',
  S2: 'all successes that clients saw are byte-identical',
  S3: 'a success that a client saw was stored before, and is replayed until retention ends, unless an event said that its completion was pending',
  S4: 'no claim between completion and the end of retention, unless the store itself lost the record',
  S5: 'fresh means fresh: a failure is told as unknown exactly where it may have had its effect; effects are at most 1 + takeovers, and at most 1 where unknown outcomes are refused',
  S6: "a command without the owner's token changes no record that exists, and attempts only grow",
  S7: 'a begin that is sent again gets its first reply',
  S8: 'every answer came from a real run',
  S9: 'nothing crosses scopes, and a mismatch neither runs nor replays',
  S10: 'where the store fails, is late, or cannot read its record, the handler does not run and the client is answered in time',
  S11: 'a disconnect never releases',
  S12: 'bounds hold, and live records are never dropped',
  S13: 'a sealed answer is unreadable where it is kept; only its own key opens it, and only for its own record',
  S14: 'a step whose result is recorded is handed to each later attempt with that result, and one that nobody took back as begun',
  L1: 'when faults stop, every key resolves within a lease + 2 s; a claim that nobody runs never holds a key longer',
  L2: 'every request is answered',
  L3: 'the process can exit',
} as const

export type Check = keyof typeof CHECKS
