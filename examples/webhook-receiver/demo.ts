import { randomBytes } from 'node:crypto'
import { type Child, type Line, startChild } from './child.js'
import { startDemoRedis } from './demo-redis.js'
import { isAsPromised, tableOf, tallyOf } from './tally.js'

const EVENTS = 12
const TYPES = ['merchant_updated', 'mandate_setup_started']

const secret = `whsec_${randomBytes(32).toString('base64')}`
const children: Child[] = []
const redis = await startDemoRedis()

// Nothing that it started outlives it.
process.once('exit', () => {
  for (const child of children) child.process.kill('SIGKILL')
  redis?.kill()
})
process.once('SIGTERM', () => process.exit(1)).once('SIGINT', () => process.exit(1))

try {
  process.exitCode = (await demo()) ? 0 : 1
} finally {
  await Promise.all(children.map((child) => child.kill()))
  redis?.kill()
}

/** Whether every event was handled as promised. */
async function demo(): Promise<boolean> {
  console.log(
    redis === null
      ? 'There is no redis-server on the PATH. The receiver remembers in memory, which does not survive a restart.'
      : 'The receiver remembers in Redis.',
  )
  const payments = start('../payments/main.js', {
    PORT: '0',
    DEMO_WEBHOOK_PAUSE_MS: '200',
    DEMO_WEBHOOK_LOOPBACK: 'true',
  })
  const first = startReceiver('0')
  const [origin, url] = await Promise.all([
    payments.until((_lines, text) => /http:\/\/localhost:\d+/.exec(text)?.[0]),
    first.until(addressIn),
  ])

  await post(`${origin}/api/service/webhook-subscription/create`, { url, events: TYPES, secret })
  const events: string[] = []
  for (let i = 0; i < EVENTS; i++) {
    const { id } = await post(`${origin}/demo/events/${TYPES[i % TYPES.length]}`)
    events.push(id)
  }
  console.log(`${EVENTS} events were fired at ${url}.`)

  // By then some are handled, but their answers have not arrived; some are being handled; and some have not come.
  await first.until((lines) => countOf(lines, 'completed') >= 2)
  await first.kill()
  console.log('The receiver was killed (-9).')
  await payments.until((lines) => countOf(lines, 'webhook failed') > 0)
  const second = startReceiver(new URL(url).port)
  await second.until(addressIn)
  console.log('The receiver was started again.\n')
  await payments.until((lines) => countOf(lines, 'webhook delivered') === EVENTS)

  const lines = [...first.lines(), ...second.lines()]
  const tallies = events.map((event) => tallyOf(event, lines))
  console.log(tableOf(tallies))
  return isAsPromised(tallies, redis !== null)
}

function startReceiver(port: string): Child {
  const demo = { DEMO_LEASE_MS: '1000', DEMO_WORK_MS: '100', DEMO_ANSWER_MS: '300' }
  const variables = { PORT: port, WEBHOOK_SECRET: secret, ...demo }
  return start('./main.js', { ...variables, ...(redis && { REDIS_URL: redis.url }) })
}

function start(program: string, variables: Readonly<Record<string, string>>): Child {
  const child = startChild(program, variables)
  children.push(child)
  return child
}

function addressIn(lines: readonly Line[]): string | undefined {
  return lines.find(({ msg }) => msg === 'listening')?.url as string | undefined
}

function countOf(lines: readonly Line[], msg: string): number {
  return lines.filter((line) => line.msg === msg).length
}

async function post(url: string, body?: object): Promise<{ readonly id: string }> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: 'Bearer demo_acme', ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as { id: string }
}
