import express from 'express'
import { idempotency, singleTenant } from 'once-per-key'
import request from 'supertest'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ANSWER, claimOf, ownOf } from '../claims.js'
import { openPool, openStore, storeOn } from './open-store.js'

const { server, pool, store, query, url } = await openStore()
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

test('a pool of two connections serves 64 requests at once, each key once', async () => {
  const url = await server.createDatabase('small_pool')
  const pool = openPool(url, { max: 2 })
  const store = storeOn({ pool })
  await store.migrate()
  const runs = new Map<string, number>()
  const once = idempotency({ store, scope: singleTenant, inFlightWaitMs: 10_000 })
  const app = express().post('/payouts', once, async (req, res) => {
    const { key } = req.idempotency as { key: string }
    runs.set(key, (runs.get(key) ?? 0) + 1)
    await new Promise((resolve) => setTimeout(resolve, 20))
    res.status(201).json({ key })
  })
  const listening = app.listen(0, '127.0.0.1')
  const responses = await Promise.all(
    Array.from({ length: 64 }, (_, i) =>
      request(listening)
        .post('/payouts')
        .set('Idempotency-Key', `key-${i % 16}`),
    ),
  )
  expect(responses.map(({ status }) => status)).toEqual(Array(64).fill(201))
  for (const [i, { body }] of responses.entries()) expect(body).toEqual({ key: `key-${i % 16}` })
  expect([...runs.values()]).toEqual(Array(16).fill(1))
  await once.idle()
  await new Promise((resolve) => listening.close(resolve))
  await pool.end()
})

describe('a command that waits for another one is decided on what that has left', () => {
  /** As commands write: neither the token nor the times have to change. */
  const changeOf = (name: string, change: string) =>
    `UPDATE once_per_key.records SET revision = revision + 1, ${change} WHERE name = '${name}'`

  /** The other one is in a transaction, over when the command waits for it. */
  async function behind<Reply>(sql: string, command: () => Promise<Reply>): Promise<Reply> {
    const holder = await pool.connect()
    await holder.query(`BEGIN; ${sql}`)
    let isOver = false
    const replied = command().finally(() => {
      isOver = true
    })
    const waits = async () => (await query("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length > 0
    while (!isOver && !(await waits()));
    await holder.query('COMMIT')
    holder.release()
    return replied
  }

  test('a renewal behind a step keeps the record uncertain', async () => {
    await store.begin('stepped', claimOf('t1'))
    const renew = () => store.renew('stepped', { ...ownOf('t1'), leaseMs: 30_000 })
    expect(await behind(changeOf('stepped', 'uncertain = 1'), renew)).toEqual({ ok: true })
    expect(await store.inspect('stepped')).toMatchObject({ uncertain: true })
  })

  test('of two operators, one as fast as the other, the second is told of the first', async () => {
    await store.release('resolved', { ...ownOf('t1'), uncertain: true, failedMs: 1_000 })
    // With a retention so short that not even the expiry changes.
    const first = changeOf('resolved', "token = 'o1', uncertain = 0, fingerprint = NULL")
    const second = () => store.resolve('resolved', { token: 'o2', attempt: 1, answer: ANSWER, retentionMs: 1 })
    const record = { state: 'failed', fingerprint: null, attempt: 1, uncertain: false }
    expect(await behind(first, second)).toEqual({ ok: false, record })
  })

  test('of two late completions of a record whose retention is over, the second is stale', async () => {
    await store.complete('late', { ...ownOf('t0'), answer: ANSWER })
    await query("UPDATE once_per_key.records SET expires_at = 1 WHERE name = 'late'")
    const first = changeOf('late', "token = 't1', status = 200, expires_at = 4102444800000")
    const second = () => store.complete('late', { ...ownOf('t2'), answer: ANSWER })
    expect(await behind(first, second)).toMatchObject({
      ok: false,
      record: { state: 'completed', answer: { status: 200 } },
    })
  })

  test('a mark of a step behind its result, in the same instant, leaves the result', async () => {
    const own = { ...ownOf('t1'), leaseMs: 30_000, label: 'charge', result: null }
    await store.begin('marked', claimOf('t1'))
    await store.step('marked', { ...own, order: 1, state: 'begun' })
    const first = changeOf('marked', `steps = '{"steps":[["charge","done",3,"MQ=="]],"rerun":false}'`)
    const second = () => store.step('marked', { ...own, order: 2, state: 'begun' })
    expect(await behind(first, second)).toEqual({ ok: true })
    expect(await store.inspect('marked')).toMatchObject({ steps: [{ label: 'charge', state: 'done' }] })
  })

  test('a claim behind a claim is refused', async () => {
    const first = `INSERT INTO once_per_key.records
        (id, name, format, revision, state, token, fingerprint, attempt, uncertain, lease_until, expires_at)
      VALUES (sha256('claimed'), 'claimed', 1, 1, 'in-flight', 't1', 'f', 1, 0, 4102444800000, 4102444800000)`
    expect(await behind(first, () => store.begin('claimed', claimOf('t2')))).toMatchObject({
      acquired: false,
      record: { attempt: 1 },
    })
    const record = { state: 'in-flight', attempt: 1, uncertain: false }
    expect(await store.begin('claimed', claimOf('t3'))).toMatchObject({ acquired: false, record })
  })

  test('a claim of a lapsed record, behind one that looks whether a transaction holds it, takes the record over', async () => {
    await store.begin('lapsed', claimOf('t1'))
    await query("UPDATE once_per_key.records SET lease_until = 1 WHERE name = 'lapsed'")
    const looks = "SELECT FROM once_per_key.records WHERE name = 'lapsed' FOR NO KEY UPDATE"
    expect(await behind(looks, () => store.begin('lapsed', claimOf('t2')))).toMatchObject({
      acquired: true,
      attempt: 2,
    })
  })

  test('a look at a lapsed record that is gone meanwhile, and whose table is locked, is told that the key is in flight', async () => {
    const impatient = openPool(url, { options: '-c lock_timeout=100' })
    const holder = await pool.connect()
    onTestFinished(async () => {
      await holder.query('ROLLBACK')
      holder.release()
      await impatient.end()
    })
    const looking = storeOn({
      transactions: pool,
      async query(text, values) {
        if (!text.includes('FOR NO KEY UPDATE')) return impatient.query(text, values)
        await query("DELETE FROM once_per_key.records WHERE name = 'gone'")
        const found = await impatient.query(text, values)
        await holder.query('BEGIN; LOCK TABLE once_per_key.records IN ACCESS EXCLUSIVE MODE')
        return found
      },
    })
    await store.begin('gone', claimOf('t1'))
    await query("UPDATE once_per_key.records SET lease_until = 1 WHERE name = 'gone'")
    const looked = looking.unclaimed?.look('gone', { token: 't2', fingerprint: 'f', unknownOutcome: 'refuse' })
    expect(await looked).toMatchObject({ acquired: false, record: { state: 'in-flight', leaseRemainingMs: 1 } })
  })

  test('a claim behind a step that is not yet committed is told at once what there is, and mismatched with another body', async () => {
    await store.begin('held', claimOf('t1'))
    const holder = await pool.connect()
    await holder.query(`BEGIN; ${changeOf('held', 'uncertain = 1')}`)
    const replies = [await store.begin('held', claimOf('t2')), await store.begin('held', claimOf('t3', 'other'))]
    await holder.query('COMMIT')
    holder.release()
    const record = { state: 'in-flight', fingerprint: 'f', attempt: 1, uncertain: false }
    expect(replies).toMatchObject([
      { acquired: false, record },
      { acquired: false, record },
    ])
    for (const { record } of replies as { record: { leaseRemainingMs: number } }[]) {
      expect(record.leaseRemainingMs).toBeGreaterThan(1_000)
    }
  })
})
