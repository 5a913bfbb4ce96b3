import { setTimeout } from 'node:timers/promises'
import { booksAt } from './books.js'
import { openClient } from './client.js'
import { LONGEST_DELAY_MS, type Payment, type Plan, type Sender, wantedIn } from './plan.js'
import type { Progress } from './progress.js'
import { openRecords, type Seen } from './records.js'
import type { Server } from './servers.js'

export interface SimulationOptions {
  readonly plan: Plan
  /** The processes of one service. */
  readonly origins: readonly string[]
  /** The first of them, where it is ours to kill. */
  readonly mortal?: Mortal
  readonly clients: number
  /** `false`: without the `Idempotency-Key` header. */
  readonly isProtected: boolean
  readonly progress: Progress
}

export interface Mortal {
  readonly server: Server
  /** Where an effect commits with its record: how many it has written, and holds before COMMIT. */
  readonly heldBy?: () => Promise<number>
}

/** What came of a plan: as the clients saw it, and as the service's own books have it. */
export interface Results {
  readonly seen: Seen
  readonly made: readonly { readonly payment: Payment; readonly times: number }[]
  /** How many other amounts, sent under a used key, were carried out. */
  readonly changesMade: number
}

/** Of the payments, so many in a hundred are done when the process is killed. */
const MIDDLE = 40
const AWAY_MS = 1_000
const EFFECT_MS = 5_000
/** Nothing is asked of the books before whatever a client left behind has ended. */
const LAST_EFFECTS_MS = LONGEST_DELAY_MS + 600

export async function simulate(options: SimulationOptions): Promise<Results> {
  const { plan, origins, mortal, clients, isProtected, progress } = options
  const records = openRecords()
  const send = openClient({ origins, isProtected, records })
  // Of the process that lives on.
  const books = booksAt(origins.at(-1) ?? '')
  const wanted = wantedIn(plan)
  const middle = Math.floor((wanted.length * MIDDLE) / 100)
  let done = 0
  let killing: Promise<void> | undefined

  async function carryOut(payment: Payment): Promise<void> {
    const { senders, shared } = payment
    if (senders.length > 1) records.struck('sentAtOnce')
    if (shared) records.struck('keyShared')
    const firstTime = senders.map(async (sender) => records.ended(payment, await send(payment, sender)))
    await Promise.all([...firstTime, shared && carryOut(shared)])
    const [first] = senders
    if (first !== undefined) await sendLater(payment, { ...first, tries: [] })
    done++
    progress.tell(done / wanted.length, `${done} of ${wanted.length} payments, ${records.seen.requests} requests`)
    // Nobody waits for it here; what goes wrong in it is told at the end.
    if (done >= middle) killOnce()?.catch(() => {})
  }

  /** What comes behind an answer. */
  async function sendLater(payment: Payment, sender: Sender): Promise<void> {
    for (let again = 0; again < payment.timesAgain; again++) {
      records.struck('sentAgain')
      records.ended(payment, await send(payment, sender))
    }
    if (payment.changed === undefined) return
    records.struck('bodyChanged')
    records.endedChanged(await send(payment, sender, payment.changed))
  }

  function killOnce(): Promise<void> | undefined {
    if (mortal) killing ??= killInTheMiddle(mortal)
    return killing
  }

  /** Behind the effect of the victims, and before their answers. */
  async function killInTheMiddle({ server, heldBy }: Mortal): Promise<void> {
    const underWay = Promise.all(plan.victims.map(carryOut))
    // Where they are held, those of one merchant wait for each other.
    const most = heldBy ? new Set(plan.victims.map(({ merchant }) => merchant)).size : plan.victims.length
    const end = performance.now() + EFFECT_MS
    let caught = 0
    while (caught < most && performance.now() < end) {
      caught = heldBy ? await heldBy() : (await timesMade(plan.victims)).filter(({ times }) => times > 0).length
    }
    await server.kill()
    records.struck('processKilled', caught)
    const where = heldBy ? 'written and not committed' : 'made and not answered'
    progress.note(`Process 1 of ${origins.length} was killed (-9): ${caught} payments were ${where}.`)
    await setTimeout(AWAY_MS)
    await server.startAgain()
    progress.note('It was started again.')
    await underWay
  }

  function timesMade(payments: readonly Payment[]): Promise<Results['made']> {
    return eachOf(payments, clients, async (payment) => {
      return { payment, times: await books.runsOf(payment.merchant, payment.name) }
    })
  }

  await eachOf(plan.payments, clients, carryOut)
  // A short run has no middle.
  await killOnce()
  await setTimeout(LAST_EFFECTS_MS)
  const changes = wanted.flatMap(({ merchant, changed }) => (changed ? [{ merchant, name: changed.name }] : []))
  const changeTimes = await eachOf(changes, clients, ({ merchant, name }) => books.runsOf(merchant, name))
  return { seen: records.seen, made: await timesMade(wanted), changesMade: changeTimes.filter((n) => n > 0).length }
}

/** Each item's outcome, with so many under way at once. */
async function eachOf<Item, Outcome>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Outcome>,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const rest = items.entries()
  const worker = async () => {
    for (const [i, item] of rest) outcomes[i] = await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return outcomes
}
