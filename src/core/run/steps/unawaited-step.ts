import { warnOnce } from '../../events/warning.js'

/**
 * Nothing else tells of a forgotten `await`. It is no misuse: a time limit of the handler's own may have answered on purpose. Only a few
 * labels are told, since one may contain what a client sends.
 */
export function warnUnawaitedStep(label: string): void {
  if (unawaited.size === MOST_LABELS) return
  unawaited.add(label)
  warnOnce(
    'ONCE_PER_KEY_STEP_NOT_AWAITED',
    `A run has completed while its step ${JSON.stringify(label)} was running: the step's result is not recorded, and if it fails, nothing ` +
      'repeats it. Unless that is meant, await each `context.step` before the answer. This is printed once for each label.',
    label,
  )
}

const MOST_LABELS = 20
const unawaited = new Set<string>()
