import { Buffer } from 'node:buffer'
import { inTime, type Leave, pause } from './client.js'
import { hostileRequests } from './hostile.js'
import { KINDS, type Kind, type KindName, SERVERS } from './mounts.js'
import { another, type Operation, otherOfSameKey, otherScope, requestOf, rivals, type SentRequest } from './requests.js'
import { ask, connect, hear, operation, type Stage, sendAndHear, serverOf, untilResolved } from './stage.js'

/** One way to use, or to misuse, the servers. */
export type Play = (stage: Stage) => Promise<void>

const GATED = (Object.keys(KINDS) as KindName[]).filter((kind) => (KINDS[kind] as Kind).gated)
const LEAVES: readonly Leave[] = ['destroy', 'reset', 'end']

/** Scripts that are three numbers apart meet at the same server, and use each other's keys again. */
const RECENT = 8
/** Beyond all scripts, at the same servers: no other script may take the key before the handler has begun. */
const OF_ITS_OWN = 3_000_000
const AGAIN = 6_000_000

const REPEATED: readonly KindName[] = ['flushed', 'events', 'big', 'stream', 'raw']

/** Several requests on one connection, in pieces as chance has it. */
export const talk: Play = async (stage) => {
  const { random, script } = stage
  const requests: SentRequest[] = []
  for (let left = 1 + random.below(random.chance(0.2) ? 20 : 6); left > 0; left--) {
    const number = Math.max(script % 3, script - 3 * random.below(RECENT))
    const same = operation(stage, number)
    const chosen = random.chance(0.6) ? same : another(same, random)
    const version = random.chance(0.03) ? '1.0' : '1.1'
    const place = { version, isFirst: requests.length === 0 } as const
    const request = requestOf({ ...chosen, server: same.server }, `c${script}.${requests.length}`, random, place)
    if (request.isAlone && requests.length > 0) break
    requests.push(request)
    if (request.isLast) break
  }
  const client = connect(stage, serverOf(script), 0)
  stage.tried('pipelined', requests.length - 1)
  const pending = requests.map(stage.judge.sending)
  const bytes = Buffer.concat(requests.map((request) => request.bytes))
  const cuts = Array.from({ length: random.pick([0, 0, 1, 3, 9]) }, () => random.below(bytes.length)).sort(
    (a, b) => a - b,
  )
  const writing = client.write(bytes, cuts, random.pick([0, 0, 1, 4]))
  for (const each of pending) if (!(await hear(stage, client, each))) break
  client.leave(random.pick(LEAVES))
  await writing
}

/** The same operation, and perhaps another that could be taken for it, on several connections at once. */
export const race: Play = async (stage) => {
  const { random, script } = stage
  const own = operation(stage, script)
  const [same, rival] = random.chance(0.2)
    ? (rivals(own) as [Operation, Operation])
    : [own, otherOfSameKey(own, random)]
  stage.tried('races')
  await Promise.all(
    Array.from({ length: 1 + random.below(5) }, async (_, i) => {
      const chosen = random.chance(0.7) ? same : rival
      const client = connect(stage, same.server, i)
      await sendAndHear(stage, client, requestOf(chosen, `c${script}.${i}`, random))
      client.leave('destroy')
    }),
  )
  await untilResolved(stage, same, 'c', 10)
}

/** A client leaves while its handler runs: nobody else runs until it ends, and its end counts. */
export const disconnect: Play = async (stage) => {
  const { random, script, service, findings, judge } = stage
  const same = operation(stage, script + OF_ITS_OWN, random.pick(GATED))
  const first = requestOf(same, `gate${script}.0`, random)
  const client = connect(stage, same.server, 0)
  const pending = judge.sending(first)
  await client.write(first.bytes)
  if ((await inTime(service.began(first.id), stage.patience)) === 'late')
    return judge.unanswered(pending, 'It did not begin')
  client.leave(random.pick(LEAVES))
  if ((await inTime(service.left(first.id), stage.patience)) === 'late')
    return judge.unanswered(pending, 'Its socket stays')
  stage.tried('disconnects')

  const others = [
    [same, 'in_flight'] as const,
    [otherOfSameKey(same, random), null] as const,
    [otherScope(same, random), null] as const,
  ]
  for (const [i, [chosen, code]] of others.entries()) {
    const reply = await ask(stage, chosen, `gate${script}.${i + 1}`, i + 1)
    if (code === null || typeof reply === 'string') continue
    const isRight = reply.status === 409 && reply.body.includes(code)
    findings.expect(
      'S11',
      isRight,
      () => `The client of ${first.id} left while it ran; a retry got ${reply.status}.\n${stage.story()}`,
    )
  }
  service.release(first.id)
  const last = await untilResolved(stage, same, 'gate', 10)
  if (typeof last === 'string' || KINDS[same.kind].outcome !== 'success') return
  const isOf = last.lines('X-Of')[0] === first.id || last.body.includes('answer_not_kept')
  findings.expect(
    'S11',
    isOf,
    () => `${first.id} succeeded after its client had left; a retry got another run's answer.\n${stage.story()}`,
  )
}

/** A client leaves at any byte of its request, or of the reply; then it comes back. */
export const cut: Play = async (stage) => {
  const { random, script, judge } = stage
  const same = operation(stage, script)
  const request = requestOf(same, `c${script}.0`, random)
  const client = connect(stage, same.server, 0)
  judge.sending(request)
  stage.tried('cuts')
  const isWhole = random.chance(0.6)
  await client.write(isWhole ? request.bytes : request.bytes.subarray(0, random.below(request.bytes.length)))
  await pause(random.pick([0, 0, 1, 3]))
  client.leave(random.pick(LEAVES))
  await untilResolved(stage, same, 'c', 1)
}

/** Whoever has seen a success, to its last byte, sends it again at once. */
export const again: Play = async (stage) => {
  const { random, script } = stage
  const kind = random.pick(REPEATED)
  const same: Operation = { ...operation(stage, script + AGAIN, kind), mount: random.pick(['slow', 'small']) }
  for (let i = 0; i < 3; i++) await ask(stage, same, `c${script}.${i}`, i)
  stage.tried('repeated')
}

/** Bytes that are no request, or hardly. The server answers or hangs up, and lives. */
export const attack: Play = async (stage) => {
  const { random, script, findings, leftOpen } = stage
  const client = connect(stage, serverOf(script), 0)
  stage.tried('hostile')
  const { bytes, behind } = hostileRequests(random, script)
  const cuts = random.chance(0.3) ? [random.below(bytes.length + 1)] : []
  await client.write(bytes, cuts, 1)
  await pause(random.pick([0, 2, 10]))
  // Whether a key protects them, who knows behind the mutations: Node itself may keep the connection.
  if (behind.some((kind) => leftOpen.has(kind))) return client.leave('reset')
  client.leave('end')
  const isClosed = await client.closed()
  findings.expect('L2', isClosed, () => `The server keeps a connection that its client has ended.\n${stage.story()}`)
  client.leave('destroy')
}

/** Handlers that have ended, answers that are being stored, and a server that stops listening: all are answered. */
export const closing: Play = async (stage) => {
  const { random, script, service, judge } = stage
  const waiting = await Promise.all(
    SERVERS.flatMap((server) =>
      ['gated', 'gated-stream', 'gated'].map((kind) => [server, kind as KindName] as const),
    ).map(async ([server, kind], i) => {
      const its: Operation = { ...operation(stage, script + i, kind), server, mount: 'closing' }
      const request = requestOf(its, `gate${script}.${i}`, random)
      const client = connect(stage, server, i)
      const pending = judge.sending(request)
      await client.write(request.bytes)
      if (request.scope !== null && request.fault === 'none') await inTime(service.began(request.id), stage.patience)
      return { client, pending }
    }),
  )
  for (const { pending } of waiting) service.release(pending.request.id)
  await pause(60)
  await inTime(service.close(), stage.patience)
  for (const { client, pending } of waiting) {
    await hear(stage, client, pending)
    client.leave('destroy')
  }
}
