import type { Check } from '../checks.js'
import type { Findings } from '../layer.js'
import type { Arrival, Observation, Request } from './history.js'
import { type Attempt, Ledger } from './ledger.js'
import type { Setting } from './setting.js'
import { storyOf } from './story.js'
import type { Tally } from './tally.js'

/** What the checks of one world go by: its history so far, and what was reckoned from it. */
export interface Evidence {
  readonly setting: Setting
  readonly tally: Tally
  ledgerOf(about: Pick<Request, 'scope' | 'key'>): Ledger
  attemptOf(request: Request): Attempt
  instanceOf(id: number): Health
  expect(check: Check, holds: boolean, about: Pick<Request, 'scope' | 'key'>, otherwise: string): void
}

/** What has befallen an instance so far. */
export interface Health {
  isCrashed: boolean
  /** When it last stood still; before the beginning of time: never. */
  lastStalledAt: number
  /** Replies that it has heard: of each, when the command was sent, and when it was heard. Only those to ever later commands. */
  readonly heard: { readonly sentAt: number; readonly at: number }[]
  /** The replies that showed it a completed record, by scope and key. */
  readonly shown: Map<string, { readonly arrival: Arrival; readonly at: number }>
}

const noStory = () => ''

export function evidenceOf(
  setting: Setting,
  tally: Tally,
  findings: Findings,
  history: readonly Observation[],
  name: string,
): Evidence & { readonly ledgers: ReadonlyMap<string, Ledger> } {
  const ledgers = new Map<string, Ledger>()
  const attempts = new Map<Request, Attempt>()
  const instances = new Map<number, Health>()

  return {
    setting,
    tally,
    ledgers,
    ledgerOf({ scope, key }) {
      const name = `${scope} ${key}`
      let ledger = ledgers.get(name)
      if (ledger === undefined) {
        ledger = new Ledger()
        ledgers.set(name, ledger)
      }
      return ledger
    },
    attemptOf(request) {
      let attempt = attempts.get(request)
      if (attempt === undefined) {
        attempt = {
          request,
          epoch: 0,
          mayBeFresh: true,
          completedIn: null,
          isPending: false,
          isConfirmed: false,
          isDuplicated: false,
          begins: 0,
          marks: new Set(),
          markedIn: new Map(),
          releases: [],
          claimSentAt: null,
          lastSentAt: null,
          unansweredRenewal: null,
          told: null,
        }
        attempts.set(request, attempt)
      }
      return attempt
    },
    instanceOf(id) {
      let health = instances.get(id)
      if (health === undefined) {
        health = { isCrashed: false, lastStalledAt: Number.NEGATIVE_INFINITY, heard: [], shown: new Map() }
        instances.set(id, health)
      }
      return health
    },
    expect(check, holds, about, otherwise) {
      if (holds) findings.expect(check, true, noStory)
      else
        findings.expect(
          check,
          false,
          () => `${otherwise}\n  ${name}, ${about.scope}/${about.key}:\n  ${storyOf(history, about)}`,
        )
    },
  }
}
