import { describe, expect, test } from 'vitest'
import * as trial from './trial.js'
import { answerNotKept, declined, done, hangUp, loggedOut, mismatched, reply, type Step, start } from './trial.js'

const REDIRECTED = (status: number): Step => {
  return () => Object.defineProperty(new Response('', { status }), 'redirected', { value: true })
}

const replayedAs = (status: number): Step => reply(status, { 'Idempotent-Replayed': 'true' })

describe('done', () => {
  test.each<{ name: string; steps: readonly Step[]; replayed: boolean }>([
    { name: 'a success', steps: [done], replayed: false },
    { name: 'the stored answer of an earlier try', steps: [hangUp, trial.replayed], replayed: true },
    { name: 'a success without a body', steps: [reply(204)], replayed: false },
    { name: 'a redirect that is a stored response', steps: [hangUp, replayedAs(303)], replayed: true },
  ])('$name', async ({ steps, replayed }) => {
    const { send } = start(steps)
    expect(await send()).toMatchObject({ outcome: 'done', replayed })
  })

  test('a success whose answer was too large to be stored, with the problem that says so', async () => {
    const { send } = start([trial.halfAnAnswer, answerNotKept])
    expect(await send()).toMatchObject({
      outcome: 'done',
      response: { status: 409 },
      problem: { code: 'answer_not_kept' },
    })
  })

  test('its response can be read as any other', async () => {
    const { send } = start([done])
    const { response } = await send()
    expect(response).toBeInstanceOf(Response)
    expect([response?.status, response?.bodyUsed, await response?.json()]).toEqual([201, false, { id: 'po_1' }])
  })

  test('keeps its key until it is forgotten: until then the operation is the same one', async () => {
    const { send, client, seen } = start([done, trial.replayed, done])
    await send()
    expect(await send()).toMatchObject({ replayed: true })
    await client().forget(trial.OPERATION)
    await send()
    const [first, second, third] = seen.map(({ key }) => key)
    expect(second).toBe(first)
    expect(third).not.toBe(first)
  })
})

describe('refused, and the key is forgotten', () => {
  test.each<{ name: string; steps: readonly Step[]; options?: object }>([
    { name: 'by the operation', steps: [declined] },
    { name: 'by what is in front of it', steps: [loggedOut] },
    { name: 'by the middleware', steps: [trial.problem(400, 'body_too_deep', { 'X-Should-Retry': 'false' })] },
    { name: 'after a try that was refused for being one too many', steps: [reply(429), loggedOut] },
    { name: 'by the operation, after a try whose end was not seen', steps: [hangUp, declined] },
    { name: 'by the operation, after one that broke', steps: [trial.broken, reply(422)] },
    { name: 'by a conflict of the operation’s own, after one that broke', steps: [trial.broken, reply(409)] },
    { name: 'by the operation, once it is in flight no more', steps: [trial.inFlight, reply(402)] },
    {
      name: 'as the caller reads it',
      steps: [hangUp, reply(451)],
      options: { settles: (refusal: Response) => refusal.status === 451 },
    },
  ])('$name', async ({ steps, options }) => {
    const { send, keys } = start(steps, options)
    expect(await send()).toMatchObject({ outcome: 'refused' })
    expect([...keys.all]).toEqual([])
  })

  test('with what the problem says', async () => {
    const { send } = start([trial.problem(400, 'key_invalid', { 'X-Should-Retry': 'false' })])
    const { problem, response } = await send()
    expect(problem).toEqual({ type: 'urn:once-per-key:problem:key_invalid', status: 400, code: 'key_invalid' })
    expect(await response?.json()).toEqual(problem)
  })

  test.each(['', 'null', '"in_flight"', '{"code":'])('and without, where it is %j', async (body) => {
    const { send } = start([reply(400, { 'Content-Type': 'application/problem+json' }, body)])
    expect((await send()).problem).toBeUndefined()
  })
})

describe('unknown, and the key is kept', () => {
  test.each<{ name: string; steps: readonly Step[]; options?: object }>([
    { name: 'where the middleware says so', steps: [hangUp, trial.outcomeUnknown] },
    {
      name: 'where the middleware says so, whatever the caller believes',
      steps: [trial.outcomeUnknown],
      options: { settles: () => true },
    },
    { name: 'where it breaks, and says that a retry is of no use', steps: [reply(500, { 'X-Should-Retry': 'false' })] },
    { name: 'where a time limit was over in the server', steps: [reply(408, { 'X-Should-Retry': 'false' })] },
    { name: 'where a gateway says that the client has left', steps: [reply(499)] },
    { name: 'where a redirect was followed to a success, such as a page for logging in', steps: [REDIRECTED(200)] },
    { name: 'where a redirect was followed to a refusal', steps: [REDIRECTED(404)] },
    { name: 'where a redirect may lead to a page for logging in', steps: [reply(302)] },
    { name: 'where a redirect may be the guard’s or the operation’s', steps: [reply(303)] },
    { name: 'where a redirect keeps the method, and nobody followed it', steps: [reply(307)] },
    { name: 'after a try whose end was not seen, on a refusal that knows of no try', steps: [hangUp, loggedOut] },
    { name: 'after a try that broke, on a refusal that knows of no try', steps: [trial.broken, loggedOut] },
    { name: 'after one that was in flight, on a refusal that knows of no try', steps: [trial.inFlight, reply(404)] },
    { name: 'where the body was changed after a success that was not seen', steps: [trial.halfAnAnswer, mismatched] },
    {
      name: 'where it is the middleware that refuses, in a shape that the service chose',
      steps: [hangUp, reply(409, { 'X-Should-Retry': 'false' }, '{"error":"conflict"}')],
    },
    { name: 'where handlers do not look', steps: [hangUp, declined], options: { settles: () => false } },
  ])('$name', async ({ steps, options }) => {
    const { send, keys, seen } = start(steps, options)
    expect(await send()).toMatchObject({ outcome: 'unknown', response: expect.any(Response) })
    expect(seen).toHaveLength(steps.length)
    expect([...keys.all.values()]).toEqual([seen[0]?.key])
  })

  test.each([401, 403, 404, 413])('on %i after a reload, since the page before may have sent it', async (status) => {
    const { send, keys, seen } = start([hangUp, reply(status), done], { maxTries: 1 })
    await send()
    expect(await send()).toMatchObject({ outcome: 'unknown', response: { status } })
    expect(keys.all.get(`once-per-key:${trial.OPERATION}`)).toBe(seen[0]?.key)
    expect(await send()).toMatchObject({ outcome: 'done' })
  })
})
