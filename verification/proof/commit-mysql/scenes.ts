import { setTimeout as pause } from 'node:timers/promises'
import { createConnection } from 'mysql2/promise'
import type { MariaDbServer } from '../../../test/support/mariadb-server.js'
import type { Told } from '../commit/clients.js'
import { playScenes, type Scene, type Scenery, type Stage, untilHeld } from '../commit/scenery.js'
import { COMMITS_NOTHING } from './service-settings.js'

/** Duplicates of a key whose transaction is open. */
const DUPLICATES = 12
/** What statements are recognized by on their way. */
const TEXTS = {
  mark: 'SAVEPOINT once_per_key',
  takesTheKey: 'INSERT INTO `once_per_key_records`',
  completes: "state = _binary'completed'",
  fence: 'NOWAIT',
  takesOver: 'WHERE id = ',
} as const

interface OnMySql extends Stage {
  readonly database: MariaDbServer
  readonly name: string
}

/** Two requests meet at each place where this database differs from others. */
export function playMySqlScenes(stage: OnMySql): Promise<Map<string, Told>> {
  return playScenes(stage, SCENES)
}

const SCENES: Readonly<Record<string, Scene<OnMySql>>> = {
  /** A retry declines while the first attempt is about to commit. */
  async 'declines-beside-a-commit'(scenery) {
    const first = await untilHeld(TEXTS.completes, scenery.stage.application, () => scenery.ask(0))
    const { status } = await scenery.ask(1, { act: 'declines' })
    first.sendOn()
    const { id } = await first.answer
    if (id !== null) scenery.expect('S3', status !== 402, 'a retry is declined beside a transaction that got 201')
    await scenery.askUntilTold()
    return id !== null
  },

  /** The record has expired, and nothing has swept it away. */
  async 'comes-after-the-retention'(scenery) {
    await scenery.askUntilTold()
    await run(scenery, `UPDATE once_per_key_records SET expires_at = 1 WHERE name = 'single-tenant:${scenery.key}'`)
    await run(scenery, `DELETE FROM effects WHERE name = '${scenery.key}'`)
    scenery.forget()
    await scenery.askUntilTold()
    return true
  },

  /** Between its look and its lock another attempt has claimed the key, acted, and failed. */
  async 'has-looked-before-another'(scenery) {
    const { application } = scenery.stage
    await scenery.ask(0, { act: 'declines', claims: true })
    const late = await untilHeld(TEXTS.mark, application, () => scenery.ask(1))
    const other = await scenery.ask(0, { act: 'acts outside and breaks', claims: true })
    late.sendOn()
    const { status } = await late.answer
    await scenery.askUntilTold()
    return other.status === 500 && status === 409
  },

  /** Its COMMIT is lost, and another attempt has succeeded by the time that it asks. */
  async 'asks-after-a-lost-commit'(scenery) {
    const { commands, application } = scenery.stage
    const completing = await untilHeld(TEXTS.completes, application, () => scenery.ask(0))
    const lost = application.dropRequest('COMMIT')
    const asking = commands.hold(TEXTS.fence)
    completing.sendOn()
    await lost
    const sendOn = await Promise.race([asking, completing.answer.then(() => null)])
    commands.disarm()
    await scenery.askUntilTold()
    sendOn?.()
    await completing.answer
    return sendOn !== null
  },

  /** A statement of the work has committed the transaction, and with it the row that was its lock: nobody runs again. */
  async 'ends-its-transaction-itself'(scenery) {
    const { status } = await scenery.ask(0, { act: 'commits itself' })
    scenery.expect(
      'S3',
      status !== 201,
      'a transaction that is not the one that has taken the key completes its record',
    )
    return true
  },

  /** It has no effect, or has it elsewhere. */
  async 'writes-nothing'(scenery) {
    const { status } = await scenery.ask(0, { act: 'writes nothing' })
    scenery.expect('S3', status !== 201, 'a transaction in which nothing was written completes a record')
    return true
  },

  /** Duplicates of a key whose transaction is open wait for no lock. */
  async 'waits-for-no-lock'(scenery) {
    const { application } = scenery.stage
    const first = await untilHeld(TEXTS.completes, application, () => scenery.ask(0))
    let areOver = false
    const duplicates = Promise.all(Array.from({ length: DUPLICATES }, () => scenery.ask(1))).finally(() => {
      areOver = true
    })
    let waiting = 0
    while (!areOver) {
      waiting = Math.max(waiting, Number((await run(scenery, WAITING))[0]?.transactions))
      await pause(WAITING_IS_OLD_MS)
    }
    scenery.expect('L1', waiting === 0, `${waiting} duplicates wait for a lock inside their transactions`)
    first.sendOn()
    await Promise.all([first.answer, duplicates])
    await scenery.askUntilTold()
    return true
  },

  /** A transaction that is about to take its key locks nothing of another one. */
  async 'meets-a-stranger'(scenery) {
    const { application } = scenery.stage
    const first = await untilHeld(TEXTS.takesTheKey, application, () => scenery.ask(0))
    const { id } = await scenery.ask(1, {}, `${scenery.key}-stranger`)
    first.sendOn()
    const { id: own } = await first.answer
    scenery.expect('L1', id !== null, 'a stranger waits for a transaction that has not taken its key yet')
    await scenery.askUntilTold()
    await scenery.askUntilTold({}, `${scenery.key}-stranger`)
    return own !== null
  },

  /** A time-out has rolled its transaction back, and the lock is gone before it asks again. */
  async 'is-rolled-back-by-a-time-out'(scenery) {
    const { application, commands, database, name } = scenery.stage
    await scenery.ask(0, { act: 'declines', claims: true })
    const late = await untilHeld(TEXTS.fence, application, () => scenery.ask(1))
    const other = await createConnection({ uri: database.url(name) })
    await other.query('START TRANSACTION')
    await other.query(`SELECT 1 ${RECORD(scenery.key)} FOR UPDATE`)
    const asking = commands.hold(TEXTS.fence)
    late.sendOn()
    const sendOn = await Promise.race([asking, late.answer.then(() => null)])
    commands.disarm()
    await other.query('ROLLBACK')
    await other.end()
    sendOn?.()
    const { id } = await late.answer
    const left = await run(scenery, `SELECT 1 FROM effects WHERE name = '${scenery.key}'`)
    scenery.expect('S3', id !== null || left.length === 0, 'work runs behind the end of its transaction')
    await scenery.askUntilTold()
    return sendOn !== null
  },

  /** A key is claimed while its owner acts. */
  async 'claims-what-is-claimed'(scenery) {
    const { application } = scenery.stage
    const act = 'acts outside'
    const owner = await untilHeld('INSERT INTO effects', application, () => scenery.ask(0, { act, claims: true }))
    await scenery.ask(1, { claims: true })
    owner.sendOn()
    await owner.answer
    await scenery.askUntilTold({ claims: true })
    return true
  },

  /** An attempt has read a record that has failed, and another one has taken it over and succeeded before it writes. */
  async 'takes-over-what-it-has-read'(scenery) {
    const { commands } = scenery.stage
    await scenery.ask(0, { act: 'declines', claims: true })
    const late = await untilHeld(TEXTS.takesOver, commands, () => scenery.ask(1, { claims: true }))
    const { id } = await scenery.ask(0, { claims: true })
    late.sendOn()
    await late.answer
    await scenery.askUntilTold({ claims: true })
    return id !== null
  },

  /** The completion of an owner that has died arrives when another attempt owns the record. */
  async 'completes-after-its-death'(scenery) {
    const { services, commands, application } = scenery.stage
    const dead = await untilHeld(TEXTS.completes, commands, () =>
      scenery.ask(0, { act: 'acts outside', claims: true }).catch(() => ({ status: 0, id: null })),
    )
    await services.kill(0)
    const next = await untilHeld('UPDATE effects', application, () => scenery.ask(1, { claims: true }))
    dead.sendOn()
    await dead.answer
    await pause(50)
    const [row] = await run(scenery, `SELECT CONVERT(state USING utf8mb4) AS state ${RECORD(scenery.key)}`)
    scenery.expect('S6', row?.state === 'in-flight', `an owner that has died has left its record ${row?.state}`)
    next.sendOn()
    const { id } = await next.answer
    await scenery.askUntilTold({ claims: true })
    return id !== null
  },

  /** The application has left a transaction open on a connection of the store, in which a command would be rolled back. */
  async 'commits-no-command'(scenery) {
    const headers = { [COMMITS_NOTHING]: 'yes' }
    const { status } = await scenery.ask(0, { act: 'acts outside', claims: true, headers })
    scenery.expect('S3', status !== 201, 'a success whose record was not committed is sent')
    return true
  },
}

const RECORD = (key: string) => `FROM once_per_key_records WHERE name = 'single-tenant:${key}'`
/** InnoDB shows the same again to whoever asks more often than each 100 ms. */
const WAITING_IS_OLD_MS = 150
const WAITING = "SELECT COUNT(*) AS transactions FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"

function run({ stage: { database, name } }: Scenery<OnMySql>, sql: string): Promise<Record<string, unknown>[]> {
  return database.run(sql, name)
}
