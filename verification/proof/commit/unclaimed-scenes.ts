import { setTimeout as pause } from 'node:timers/promises'
import type { Pool } from 'pg'
import { IN_STATEMENT } from '../../../test/support/postgres-statements.js'
import type { Told } from './clients.js'
import { MOST_TRIES, playScenes, type Scene, type Stage, untilHeld } from './scenery.js'

/** Duplicates of a key whose transaction is open. */
const DUPLICATES = 12

interface OnPostgres extends Stage {
  readonly operator: Pool
}

/**
 * Orders whose transactions take their keys, one scene after the other: two requests meet at each place where the key must not be
 * taken twice, or an answer not be believed. Which of them comes when is decided by holding their statements back.
 */
export function playUnclaimedScenes(stage: OnPostgres): Promise<ReadonlyMap<string, Told>> {
  return playScenes(stage, SCENES)
}

const SCENES: Readonly<Record<string, Scene<OnPostgres>>> = {
  /** A retry reads the effect of its own first attempt, and declines; the first attempt has succeeded. */
  async 'reads-its-own-effect'(scenery) {
    const { application } = scenery.stage
    const retry = await untilHeld('AS seen', application, () => scenery.ask(1, { act: 'reads before' }))
    const first = await scenery.ask(0)
    retry.sendOn()
    const { status } = await retry.answer
    if (first.id !== null) scenery.expect('S3', status !== 402, 'a retry is declined, and the first attempt got 201')
    await scenery.askUntilTold()
    return first.id !== null
  },

  /** A retry declines while the first attempt is about to commit. */
  async 'declines-beside-a-commit'(scenery) {
    const { commands, application } = scenery.stage
    const retry = await untilHeld(IN_STATEMENT.fence, commands, () => scenery.ask(1, { act: 'declines' }))
    const first = await untilHeld(IN_STATEMENT.finish, application, () => scenery.ask(0))
    retry.sendOn()
    await pause(50)
    first.sendOn()
    const [{ status }, { id }] = await Promise.all([retry.answer, first.answer])
    if (id !== null) scenery.expect('S3', status !== 402, 'a retry is declined beside a transaction that got 201')
    await scenery.askUntilTold()
    return id !== null
  },

  /** A retry declines, and the first attempt has committed by the time that the retry looks once more. */
  async 'declines-behind-a-commit'(scenery) {
    const retry = await untilHeld(IN_STATEMENT.fence, scenery.stage.commands, () => scenery.ask(1, { act: 'declines' }))
    const { id } = await scenery.ask(0)
    retry.sendOn()
    const { status } = await retry.answer
    if (id !== null) scenery.expect('S3', status !== 402, 'a retry is declined behind a transaction that got 201')
    await scenery.askUntilTold()
    return id !== null
  },

  /** A success without a transaction: no record says what it did. */
  async 'succeeds-without-a-transaction'(scenery) {
    const { status } = await scenery.ask(0, { act: 'acts outside' })
    scenery.expect('S3', status !== 201, 'a success of which no record says is sent')
    await scenery.askUntilTold()
    return true
  },

  /** The record has expired, and nothing has swept it away. */
  async 'comes-after-the-retention'(scenery) {
    const { operator } = scenery.stage
    const name = `single-tenant:${scenery.key}`
    await scenery.askUntilTold()
    await operator.query('UPDATE once_per_key.records SET expires_at = 1 WHERE name = $1', [name])
    await operator.query('DELETE FROM effects WHERE key = $1', [scenery.key])
    scenery.forget()
    await scenery.askUntilTold()
    return true
  },

  /** Between its look and its transaction another attempt has claimed the key, acted, and failed. */
  async 'has-looked-before-another'(scenery) {
    const { application } = scenery.stage
    const isolation = 'repeatable read'
    await scenery.ask(0, { act: 'declines', claims: true, isolation })
    const late = await untilHeld(IN_STATEMENT.enter, application, () => scenery.ask(1, { isolation }))
    const other = await scenery.ask(0, { act: 'acts outside and breaks', claims: true, isolation })
    late.sendOn()
    const { status } = await late.answer
    await scenery.askUntilTold({ isolation })
    return other.status === 500 && status === 409
  },

  /** Its COMMIT is lost, and another attempt has succeeded by the time that it asks. */
  async 'asks-after-a-lost-commit'(scenery) {
    const { commands, application } = scenery.stage
    const lost = application.dropRequest(IN_STATEMENT.finish)
    const first = await untilHeld(IN_STATEMENT.fence, commands, () => scenery.ask(0))
    await lost
    await scenery.askUntilTold()
    first.sendOn()
    await first.answer
    return true
  },

  /** The transaction that completes the record is not the one that has taken the key. */
  async 'ends-its-transaction-itself'(scenery) {
    const { status } = await scenery.ask(0, { act: 'commits itself' })
    scenery.expect('S3', status !== 201, 'a transaction that has not taken the key completes its record')
    await scenery.askUntilTold()
    return true
  },

  /** Duplicates of a key whose transaction is open give their connections back before they wait. */
  async 'waits-without-a-connection'(scenery) {
    const { application, operator } = scenery.stage
    const first = await untilHeld(IN_STATEMENT.finish, application, () => scenery.ask(0))
    let areOver = false
    const duplicates = Promise.all(Array.from({ length: DUPLICATES }, () => scenery.ask(1))).finally(() => {
      areOver = true
    })
    let waiting = 0
    while (!areOver) waiting = Math.max(waiting, (await operator.query(WAITING)).rows[0].sessions)
    scenery.expect('L1', waiting === 0, `${waiting} sessions of duplicates wait inside their transactions`)
    first.sendOn()
    await Promise.all([first.answer, duplicates])
    await scenery.askUntilTold()
    return true
  },

  /** Two strangers, each in a serializable transaction, do not abort each other. */
  async 'meets-a-stranger'(scenery) {
    const { application } = scenery.stage
    const [isolation, stranger] = ['serializable', `${scenery.key}-stranger`] as const
    const first = await untilHeld(IN_STATEMENT.finish, application, () => scenery.ask(0, { isolation }))
    const second = await untilHeld(IN_STATEMENT.finish, application, () => scenery.ask(1, { isolation }, stranger))
    first.sendOn()
    const { id } = await first.answer
    second.sendOn()
    const { id: other } = await second.answer
    const haveBoth = id !== null && other !== null
    const isLast = scenery.key.endsWith(`-${MOST_TRIES}`)
    if (haveBoth || isLast) scenery.expect('L1', haveBoth, 'transactions of two keys abort each other each time')
    await scenery.askUntilTold({ isolation })
    await scenery.askUntilTold({ isolation }, stranger)
    return haveBoth
  },
}

const WAITING = "SELECT count(*)::int AS sessions FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
