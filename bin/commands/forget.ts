import type { ErasedAnswers, IdempotencyRecord, RecordName, ScopeName } from 'once-per-key/core'
import { assertCanAsk, confirm, describeNoRecords, NO_RECORD, reportUnchanged, SAID_NO } from '../asking.js'
import { assertNameParts, type CommandLine, type Options, UsageError } from '../command-line.js'
import { createEngine, readRecord } from '../operator.js'
import { printJson, stripControlCharacters } from '../printed.js'
import { printPrefixNotice, type Target } from '../target.js'
import { printRecord } from './inspect.js'

/** Erases stored answers: of a scope, or of one key. */
export async function runForget({ rest, options }: CommandLine, target: Target): Promise<number> {
  const { scope, key, namespace, path, remove = false, 'dry-run': isDryRun = false } = options
  if (scope === undefined || scope === '' || rest.length > 0) {
    throw new UsageError('Say whose answers: once-per-key forget --scope SCOPE …')
  }
  if (remove && key === undefined) throw new UsageError('--remove is for one key, by --key: it runs again.')
  if (path !== undefined && key === undefined) throw new UsageError('--path is for one key, by --key.')
  assertNameParts({ key, namespace, path })
  if (!isDryRun) assertCanAsk(options)
  const of = { scope, ...(namespace !== undefined && { namespace }) }
  if (key === undefined) return eraseScope(of, options, target)
  return forgetKey({ ...of, key, ...(path !== undefined && { path }) }, options, target)
}

async function eraseScope(of: ScopeName, options: Options, target: Target): Promise<number> {
  const { 'dry-run': countsOnly = false, yes, json } = options
  const question = `Erase the answers of the scope ${stripControlCharacters(JSON.stringify(of.scope))}? Their retries get 409 answer_not_kept.`
  if (!countsOnly && !yes && !(await confirm(question))) return reportUnchanged(options, SAID_NO, { forgotten: 0 })
  const counted = await createEngine(target.store).eraseScopeAnswers(of, { countsOnly })
  const isNothing = counted.forgotten + counted.left + counted.unreadable === 0
  if (isNothing) printPrefixNotice(target)
  if (json) printJson(counted)
  else printCounts(counted, countsOnly)
  if (isNothing && !json) console.log(describeNoRecords(of))
  return counted.left + counted.unreadable > 0 ? 1 : 0
}

function printCounts({ forgotten, left, unreadable }: ErasedAnswers, countsOnly: boolean): void {
  console.log(`Answers ${countsOnly ? 'that would be erased' : 'erased'}: ${forgotten}.`)
  if (left > 0) {
    console.log(
      `Records left: ${left}. They run, or their outcome is unknown: see once-per-key unknown, then repeat it.`,
    )
  }
  if (unreadable > 0) {
    console.log(`Records that could not be read: ${unreadable}. ${UNREADABLE}`)
  }
}

const UNREADABLE =
  'They are damaged, or a later version wrote them, and their answers may still be there: repeat it with the latest version; a damaged ' +
  'record stays until its retention ends, or until you delete it by hand in the store.'

async function forgetKey(name: RecordName, options: Options, target: Target): Promise<number> {
  const { remove: removes = false, 'dry-run': isDryRun, yes, json } = options
  const { store } = target
  const record = await readRecord(store, name)
  if (record === null) printPrefixNotice(target)
  const why = findForgetObstacle(record, removes)
  if (record === null || record.state === 'in-flight' || why !== null) {
    return reportUnchanged(options, why ?? NO_RECORD, { forgotten: 0 })
  }
  if (!yes && !json) printRecord(name, record, false)
  if (!isDryRun) {
    const question = removes
      ? 'Remove the record? The key is new then: the next request with it runs, as if there had been none.'
      : 'Erase its answer? Retries get 409 answer_not_kept.'
    if (!yes && !(await confirm(question))) return reportUnchanged(options, SAID_NO, { forgotten: 0 })
    const forgotten = await createEngine(store).forget(name, record, { removes })
    if (!forgotten.ok) return reportUnchanged(options, 'the record has changed meanwhile', { forgotten: 0 })
  }
  if (json) printJson({ forgotten: 1, left: 0, unreadable: 0 })
  else
    console.log(isDryRun ? 'It would be done: nothing was changed.' : removes ? 'Removed: the key is new.' : 'Erased.')
  return 0
}

/** `null`: something can be forgotten. */
function findForgetObstacle(record: IdempotencyRecord | null, removes: boolean): string | null {
  if (record === null) return NO_RECORD
  if (record.state === 'in-flight' && record.leaseRemainingMs > 0) return 'it runs'
  if (record.state === 'in-flight' || (record.state === 'failed' && record.uncertain))
    return 'its outcome is unknown: settle it first, by once-per-key resolve'
  return record.state === 'failed' && !removes ? 'it failed, so it has no answer' : null
}
