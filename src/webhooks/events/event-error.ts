import { optionRules, recognizeAcrossCopies } from '../../core/index.js'

/** One problem with an event. */
export interface WebhookEventIssue {
  /** Where it is, for example `payload.apps[2].hasApiKey`; empty for the event as a whole. */
  readonly path: string
  /** What was expected there, and the kind of the value that was found; never its content. */
  readonly message: string
}

const MOST_LINES = 100

/**
 * An event that does not match its documentation. `issues` lists every problem (of a list, as far as the first
 * thousand), the message the first hundred; neither contains values of the event.
 */
export class WebhookEventError extends Error {
  override readonly name = 'WebhookEventError'
  readonly code = 'event_invalid'
  readonly issues: readonly WebhookEventIssue[]

  constructor(issues: readonly WebhookEventIssue[]) {
    super(`The webhook event is not as documented:${formatIssueList(issues)}`)
    this.issues = issues
  }
}
recognizeAcrossCopies(WebhookEventError, 'WebhookEventError')

/** A path in code notation, for example `a.b[0]`. */
export function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((written, step) => {
    if (typeof step === 'number') return `${written}[${step}]`
    return written === '' ? String(step) : `${written}.${String(step)}`
  }, '')
}

function formatIssueList(issues: readonly WebhookEventIssue[]): string {
  const lines = issues.slice(0, MOST_LINES).map(({ path, message }) => `${path || 'the event'}: ${message}`)
  if (issues.length > lines.length) lines.push(`and ${issues.length - lines.length} more`)
  return optionRules.toBulletList(lines)
}
