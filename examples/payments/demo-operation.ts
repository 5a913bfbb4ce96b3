import type { Request, RequestHandler } from 'express'
import type { Books } from './ledger.js'
import type { Context } from './operation.js'
import { notValid } from './problems.js'

/** How often the operation of a name had its effect. */
export interface OperationRuns {
  readonly id: string
  readonly runs: number
  readonly keptUntil: string
}

const HEADER = 'x-demo-operation'
const MOST_CHARACTERS = 64
/** As long as outcomes: what they keep from running again is not forgotten before them. */
const KEPT_MS = 25 * 3_600_000

/** Refuses a wrong name before the key is claimed. */
export const checkDemoOperation: RequestHandler = (req, _res, next) => {
  const given = req.get(HEADER)
  if (given !== undefined) checkName(given, HEADER)
  next()
}

/** The same for a name in the path. */
export const checkOperationName: RequestHandler = (req, _res, next) => {
  checkName(`${req.params.name}`, 'name')
  next()
}

function checkName(given: string, path: string): void {
  if (given.length <= MOST_CHARACTERS && /^[A-Za-z0-9_-]+$/.test(given)) return
  const message = `Must be 1 to ${MOST_CHARACTERS} of the characters A-Z a-z 0-9 _ -`
  throw notValid('operation_name_invalid', 'The name is not valid', { path, message })
}

/** Counts a run in the transaction of its effect: exact, whatever crashes. Nothing is counted without a name. */
export async function countRun(req: Request, { books, now }: Context): Promise<void> {
  const name = req.get(HEADER)
  if (name === undefined) return
  const keptUntil = new Date(now.getTime() + KEPT_MS).toISOString()
  books.put('operationRuns', { id: name, runs: (await runsOf(books, name)) + 1, keptUntil })
}

export async function runsOf(books: Books, name: string): Promise<number> {
  return (await books.get('operationRuns', name))?.runs ?? 0
}
