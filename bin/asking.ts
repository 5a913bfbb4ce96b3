import { createInterface } from 'node:readline'
import type { ScopeName } from 'once-per-key/core'
import { type Options, UsageError } from './command-line.js'
import { printJson } from './printed.js'

/** @throws UsageError: whoever typed it cannot be asked, and did not say --yes. */
export function assertCanAsk({ yes }: Options): void {
  if (!yes && !process.stdin.isTTY) throw new UsageError('Nobody can be asked here: look at the record, and add --yes.')
}

/** Beside the output, which may be piped on. Ctrl-C and Ctrl-D close the question without an answer, which is no. */
export async function confirm(question: string): Promise<boolean> {
  const ask = createInterface({ input: process.stdin, output: process.stderr })
  const said = await new Promise<string | null>((resolve) => {
    ask.once('close', () => resolve(null))
    ask.question(`\n${question} Type yes: `, resolve)
  })
  if (said === null) console.error()
  ask.close()
  return said?.trim().toLowerCase() === 'yes'
}

export const SAID_NO = 'you said no'
export const NO_RECORD = 'there is no record'

/** Where a scope has none: other operations than requests have namespaces, which nobody would think of. */
export function describeNoRecords({ namespace }: ScopeName): string {
  return namespace === undefined ? NO_REQUESTS : 'The scope has no records in that namespace.'
}

const NO_REQUESTS =
  'The scope has no records of requests. For a runner say --namespace run.NAME, and for webhooks’ events --namespace webhook.'

/** Says that nothing was changed. Returns the exit code. */
export function reportUnchanged({ json }: Options, why: string, asJson: object): number {
  if (json) printJson({ ...asJson, why })
  else console.log(`Nothing was changed: ${why}.`)
  return 1
}
