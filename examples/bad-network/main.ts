import { randomBytes } from 'node:crypto'
import { checkService, ServiceUnfit } from './books.js'
import { merchants } from './instructions.js'
import { commandOf, HELP, OptionInvalid, type Options, optionsOf } from './options.js'
import { paintFor } from './paint.js'
import { openPlace, type Place } from './place.js'
import { planOf } from './plan.js'
import { startProgress } from './progress.js'
import { reportOf } from './report.js'
import { type Server, startServer } from './servers.js'
import { simulate } from './simulation.js'
import { isAsPromised, verdictOf } from './verdict.js'

const servers: Server[] = []
let place: Place | undefined

process.once('SIGTERM', () => process.exit(143)).once('SIGINT', () => process.exit(130))
// Whoever reads this, such as `head`, has read enough.
process.stdout.on('error', () => process.exit(1))

try {
  const options = optionsOf(process.argv.slice(2), process.env)
  if (options.help) console.log(HELP)
  else process.exitCode = (await run(options)) ? 0 : 1
} catch (error) {
  if (!(error instanceof OptionInvalid || error instanceof ServiceUnfit)) throw error
  console.error(error.message)
  process.exitCode = 2
} finally {
  await Promise.all(servers.map((server) => server.kill()))
  await place?.close()
}

/** Whether all was as promised; without protection, nothing is. */
async function run(options: Options): Promise<boolean> {
  const { url, shared, seed, operations, clients, isProtected } = options
  const { stdout } = process
  const paint = paintFor(stdout)
  const header = `${isProtected ? 'with' : 'without'} the Idempotency-Key header`
  console.log(paint('bold', `${operations} payments over a bad network: ${clients} clients, ${header}, seed ${seed}`))
  if (shared?.name === 'Postgres' && shared.url === undefined) console.log('  starting a Postgres for it…')
  place = shared && (await openPlace(shared))
  const origins = url === undefined ? await startService() : [url]
  await Promise.all(origins.map((origin) => checkService(origin, merchants)))
  console.log(
    `  sent to ${origins.join(' and ')}${place === undefined ? '' : `, two processes on one ${place.name}`}\n`,
  )

  const [server] = servers
  // Without a key there is no record that a payment could commit with.
  const heldBy = isProtected ? place?.heldBy : undefined
  const mortal = server && place && { server, ...(heldBy && { heldBy: () => heldBy(0) }) }
  const withKill = mortal !== undefined
  const plan = planOf({ seed, operations, run: `sim-${randomBytes(4).toString('hex')}`, withKill })
  const progress = startProgress(stdout)
  const results = await simulate({
    plan,
    origins,
    clients,
    isProtected,
    progress,
    ...(withKill && { mortal }),
  }).finally(progress.end)

  const verdict = verdictOf(results, { withKill })
  console.log(reportOf(verdict, results.seen, isProtected, paint))
  console.log(`\nThe same choices again:   ${commandOf(options)}`)
  const other = commandOf({ ...options, isProtected: !isProtected })
  console.log(`The same ${isProtected ? 'without' : 'with'} the key: ${isProtected ? '' : '   '}${other}`)
  return isAsPromised(verdict) || !isProtected
}

/** One process that keeps records in its memory, or two that share a place. */
async function startService(): Promise<string[]> {
  const processes = place === undefined ? 1 : 2
  while (servers.length < processes) {
    // A short lease: what the killed process holds is free again in seconds.
    const variables = place === undefined ? {} : { ...place.variablesOf(servers.length), DEMO_LEASE_MS: '3000' }
    servers.push(await startServer(variables))
  }
  return servers.map(({ origin }) => origin)
}
