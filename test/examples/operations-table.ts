import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PATHS, type Received, type Service } from './payments-service.js'

/** What holds on each of the 15 paths, on whatever the service stands on. */
export function operationsTable(open: () => Promise<Service>): void {
  let service: Service

  beforeAll(async () => {
    service = await open()
  })

  afterAll(() => service.stop())

  test('GET /operations lists the 15 paths of the document', async () => {
    const { status, json } = await service.send('/operations', { method: 'GET' })
    expect(status).toBe(200)
    expect(json.map(({ path }: { path: string }) => path).sort()).toEqual([...PATHS].sort())
    for (const { title, sample } of json) expect([typeof title, typeof sample]).toEqual(['string', 'object'])
  })

  test('all samples of one list succeed, one after the other', async () => {
    for (const apiKey of ['demo_acme', 'demo_globex']) {
      const { json } = await service.send('/operations', { method: 'GET', apiKey })
      for (const { path, sample } of json) {
        const { status } = await service.send(path, { apiKey, body: sample })
        expect([path, status]).toEqual([path, path.includes('create') || path.includes('fx') ? 201 : 200])
      }
    }
  })

  describe.each(PATHS)('%s', (path) => {
    test('the first request runs, a retry replays it byte for byte and runs nothing', async () => {
      const request = { body: await service.sample(path), key: randomUUID() }
      const first = await service.send(path, request)
      expectSuccess(first)
      const writes = service.writes()
      const retry = await service.send(path, request)
      expect(retry.headers.get('idempotent-replayed')).toBe('true')
      expectSameAnswer(retry, first)
      expect(service.writes()).toBe(writes)
      expect(decisions(request.key)).toEqual(['claimed', 'completed', 'replayed'])
    })

    test('a duplicate of a running request is in flight, and gets the answer afterwards', async () => {
      const request = { body: await service.sample(path), key: randomUUID() }
      const gate = service.hold()
      const first = service.send(path, request)
      await gate.entered
      const duplicate = await service.send(path, request).finally(gate.open)
      expectRefusal(duplicate, 'in_flight')
      expect(duplicate.headers.get('retry-after')).toBe('1')
      expectSuccess(await first)
      expectSameAnswer(await service.send(path, request), await first)
      expect(decisions(request.key)).toEqual(['claimed', 'in_flight', 'completed', 'replayed'])
    })

    test('the key with another body is a conflict and runs nothing, the first request still replays', async () => {
      const request = { body: await service.sample(path), key: randomUUID() }
      const first = await service.send(path, request)
      const other = await service.sample(path)
      const writes = service.writes()
      const changed = await service.send(path, { ...request, body: { ...other, ...changeOf(other) } })
      expectRefusal(changed, 'mismatched')
      expect(changed.headers.get('retry-after')).toBeNull()
      expect(service.writes()).toBe(writes)
      expectSameAnswer(await service.send(path, request), first)
    })

    test('a 400 releases the key, and the corrected body runs under it', async () => {
      const body = await service.sample(path)
      const key = randomUUID()
      const [field] = Object.keys(body) as [string]
      const wrong = await service.send(path, { key, body: { ...body, [field]: null } })
      expectRefusal(wrong, 'validation_failed', 400)
      expect(wrong.json.errors.map((error: { path: string }) => error.path)).toContain(field)
      const corrected = await service.send(path, { key, body })
      expectSuccess(corrected)
      expectSameAnswer(await service.send(path, { key, body }), corrected)
      const claims = service.log.filter((line) => line.key === key && line.msg === 'claimed')
      expect(claims).toMatchObject([{ attempt: 1 }, { attempt: 2, previousOutcome: 'failed' }])
    })

    test("another merchant's request with the same key runs by itself", async () => {
      const key = randomUUID()
      const ours = await service.send(path, { key, body: await service.sample(path) })
      const theirBody = await service.sample(path, 'demo_globex')
      const theirs = await service.send(path, { key, body: theirBody, apiKey: 'demo_globex' })
      expectSuccess(theirs)
      expect(theirs.headers.get('idempotent-replayed')).toBeNull()
      expect(theirs.json.id).not.toBe(ours.json.id)
      expectSameAnswer(await service.send(path, { key, body: theirBody, apiKey: 'demo_globex' }), theirs)
    })

    test('a retry with another API key of the same merchant replays', async () => {
      const request = { body: await service.sample(path), key: randomUUID() }
      const first = await service.send(path, request)
      const retry = await service.send(path, { ...request, apiKey: 'demo_acme_new' })
      expect(retry.headers.get('idempotent-replayed')).toBe('true')
      expectSameAnswer(retry, first)
    })
  })

  function decisions(key: string): unknown[] {
    return service.log.filter((line) => line.key === key).map((line) => line.msg)
  }
}

/** A change that is valid wherever there is an amount, and none of the operation's business elsewhere. */
function changeOf(body: Record<string, unknown>): object {
  return typeof body.amount === 'number' ? { amount: body.amount + 1 } : { changed: true }
}

export function expectSuccess({ status, json }: Received): void {
  expect([200, 201], JSON.stringify(json)).toContain(status)
}

export function expectRefusal({ status, headers, json }: Received, code: string, expectedStatus = 409): void {
  expect([status, json.code]).toEqual([expectedStatus, code])
  expect(headers.get('content-type')).toBe('application/problem+json')
}

export function expectSameAnswer(retry: Received, first: Received): void {
  expect(retry.status).toBe(first.status)
  expect(retry.bytes.equals(first.bytes)).toBe(true)
  expect(lasting(retry.headers)).toEqual(lasting(first.headers))
}

function lasting(headers: Headers): object {
  const { date: _date, 'idempotent-replayed': _replayed, ...rest } = Object.fromEntries(headers)
  return rest
}
