import { setTimeout as pause } from 'node:timers/promises'
import { MOST_TRIES, type Scene, untilHeld } from './scenery.js'

/** Duplicates of a key whose transaction is open. */
const DUPLICATES = 12
/** InnoDB shows the same again to whoever asks more often than each 100 ms. */
const WAITING_IS_OLD_MS = 150

/**
 * Orders whose transactions take their keys: two requests meet at each place where the key must not be taken twice, or an answer not be
 * believed. Which of them comes when is decided by holding their statements back.
 */
export const UNCLAIMED_SCENES: Readonly<Record<string, Scene>> = {
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
    const { application, dialect } = scenery.stage
    const first = await untilHeld(dialect.texts.finish, application, () => scenery.ask(0))
    const { status } = await scenery.ask(1, { act: 'declines' })
    first.sendOn()
    const { id } = await first.answer
    if (id !== null) scenery.expect('S3', status !== 402, 'a retry is declined beside a transaction that got 201')
    await scenery.askUntilTold()
    return id !== null
  },

  /** A retry declines, and the first attempt has committed by the time that the retry looks once more. */
  async 'declines-behind-a-commit'(scenery) {
    const { commands, dialect } = scenery.stage
    const retry = await untilHeld(dialect.texts.fence, commands, () => scenery.ask(1, { act: 'declines' }))
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
    const { dialect, query } = scenery.stage
    await scenery.askUntilTold()
    await query(dialect.expireSql, [scenery.record])
    await query('DELETE FROM effects WHERE name = ?', [scenery.key])
    scenery.forget()
    await scenery.askUntilTold()
    return true
  },

  /** Between its look and its transaction another attempt has claimed the key, acted, and failed. */
  async 'has-looked-before-another'(scenery) {
    const { application, dialect } = scenery.stage
    const isolation = 'repeatable read'
    await scenery.ask(0, { act: 'declines', claims: true, isolation })
    const late = await untilHeld(dialect.texts.mark, application, () => scenery.ask(1, { isolation }))
    const other = await scenery.ask(0, { act: 'acts outside and breaks', claims: true, isolation })
    late.sendOn()
    const { status } = await late.answer
    await scenery.askUntilTold({ isolation })
    return other.status === 500 && status === 409
  },

  /** Its COMMIT is lost, and another attempt has succeeded by the time that it asks. */
  async 'asks-after-a-lost-commit'(scenery) {
    const { commands, application, dialect } = scenery.stage
    const lost = application.dropRequest(dialect.texts.commit)
    const first = scenery.ask(0)
    const asking = lost.then(() => commands.hold(dialect.texts.fence))
    const sendOn = await Promise.race([asking, first.then(() => null)])
    application.disarm()
    commands.disarm()
    await scenery.askUntilTold()
    sendOn?.()
    await first
    return sendOn !== null
  },

  /** The transaction that completes the record is not the one that has taken the key. */
  async 'ends-its-transaction-itself'(scenery) {
    const { status } = await scenery.ask(0, { act: 'commits itself' })
    scenery.expect('S3', status !== 201, 'a transaction that has not taken the key completes its record')
    if (!scenery.stage.dialect.keepsKeysOfCommits) await scenery.askUntilTold()
    return true
  },

  /** It has no effect, or has it elsewhere. */
  async 'writes-nothing'(scenery) {
    const { status } = await scenery.ask(0, { act: 'writes nothing' })
    scenery.expect('S3', status !== 201, 'a transaction in which nothing was written completes a record')
    await scenery.askUntilTold()
    return true
  },

  /** Duplicates of a key whose transaction is open wait for no lock, and give their connections back before they wait. */
  async 'waits-for-no-lock'(scenery) {
    const { application, dialect, query } = scenery.stage
    const first = await untilHeld(dialect.texts.finish, application, () => scenery.ask(0))
    let areOver = false
    const duplicates = Promise.all(Array.from({ length: DUPLICATES }, () => scenery.ask(1))).finally(() => {
      areOver = true
    })
    let waiting = 0
    while (!areOver) {
      waiting = Math.max(waiting, Number((await query(dialect.waitingSql))[0].number))
      await pause(WAITING_IS_OLD_MS)
    }
    scenery.expect('L1', waiting === 0, `${waiting} duplicates wait for a lock inside their transactions`)
    first.sendOn()
    await Promise.all([first.answer, duplicates])
    await scenery.askUntilTold()
    return true
  },

  /** Two strangers, each in a serializable transaction, do not abort each other. */
  async 'meets-a-stranger'(scenery) {
    const { application, dialect } = scenery.stage
    const [isolation, stranger] = ['serializable', `${scenery.key}-stranger`] as const
    const first = await untilHeld(dialect.texts.finish, application, () => scenery.ask(0, { isolation }))
    const second = await untilHeld(dialect.texts.finish, application, () => scenery.ask(1, { isolation }, stranger))
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

  /** A transaction that is about to take its key locks nothing of another one. */
  async 'lets-a-stranger-pass'(scenery) {
    const { application, dialect } = scenery.stage
    const stranger = `${scenery.key}-stranger`
    const first = await untilHeld(dialect.texts.take, application, () => scenery.ask(0))
    const { id } = await scenery.ask(1, {}, stranger)
    first.sendOn()
    const { id: own } = await first.answer
    scenery.expect('L1', id !== null, 'a stranger waits for a transaction that has not taken its key yet')
    await scenery.askUntilTold()
    await scenery.askUntilTold({}, stranger)
    return own !== null
  },
}
