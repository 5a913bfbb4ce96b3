import type { NetworkFault } from './plan.js'

/** All that goes wrong. */
export type Fault = NetworkFault | 'sentAtOnce' | 'sentAgain' | 'bodyChanged' | 'keyShared'

/** How a report calls it, and in which order. */
export const faultNames: Readonly<Record<Fault, string>> = {
  cutOff: 'requests cut off before they were whole',
  answerLost: 'answers lost on their way back',
  timedOut: 'slow answers that the client did not wait for',
  hungUp: 'clients that hung up right after sending',
  sentAtOnce: 'payments sent two to five times at once',
  sentAgain: 'requests sent again after their answer',
  bodyChanged: 'other amounts sent under a used key',
  keyShared: 'keys that both merchants used',
  ownerLost: 'owners lost after the effect, before the answer',
  processKilled: 'payments caught there by kill -9 of a process',
}

/** Those that a run can meet. */
export function faultsOf({ withKill }: { readonly withKill: boolean }): readonly Fault[] {
  return (Object.keys(faultNames) as Fault[]).filter((fault) => withKill || fault !== 'processKilled')
}
