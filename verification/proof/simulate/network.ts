import type { Store } from 'once-per-key/core'
import type { Arrival, Command, CommandName, Request, Terms } from './history.js'
import { type Instance, stallForAMoment } from './instance.js'
import type { Records } from './records.js'
import { delayed, isTroubled, type World } from './world.js'

type Fate =
  | 'delivered'
  | 'thrown'
  | 'request lost'
  | 'reply lost'
  | 'failed before'
  | 'failed after'
  | 'request late'
  | 'reply late'
  | 'reply empty'

/** The store as an instance sees it: behind a network that delays, loses, repeats and fails. */
export function storeBehindNetwork(world: World, records: Records, instanceOf: () => Instance): Store {
  const { clock, random, setting, tally, observe } = world
  const { leaseMs, storeTimeoutMs } = setting.options

  function send<Reply>(name: CommandName, storageKey: string, terms: Terms): Promise<Reply> {
    const instance = instanceOf()
    const request = claimantOf(terms.token)
    const command: Command = {
      id: world.commands++,
      name,
      storageKey,
      terms,
      request,
      sentAt: clock.now,
      isDuplicated: false,
      isHindered: false,
    }
    if (name === 'begin') request.asked = command
    observe({ at: clock.now, type: 'sent', command })

    const fate = fateOf(instance)
    command.isHindered = fate !== 'delivered'
    if (isTroubled(world) && random.chance(setting.faults.stallBehind)) stallForAMoment(world, instance)
    if (fate === 'thrown') {
      tally['commands that threw']++
      observe({ at: clock.now, type: 'failed', command, where: 'on its way' })
      throw new Error('not connected')
    }
    return new Promise((resolve, reject) => carry(instance, command, fate, resolve as (reply: unknown) => void, reject))
  }

  function claimantOf(token: string): Request {
    let request = world.claimants.get(token)
    if (request === undefined) {
      request = world.inHand.request
      if (request === undefined) throw new Error('a claim that no request asked for')
      request.token = token
      world.claimants.set(token, request)
    }
    return request
  }

  function fateOf(instance: Instance): Fate {
    if (!isTroubled(world)) return 'delivered'
    if (clock.now < instance.cutUntil) return instance.isCutSilently ? 'request lost' : 'failed before'
    const { faults } = setting
    if (random.chance(faults.thrown)) return 'thrown'
    if (random.chance(faults.requestLost)) return 'request lost'
    if (random.chance(faults.replyLost)) return 'reply lost'
    if (random.chance(faults.failedBefore)) return 'failed before'
    if (random.chance(faults.failedAfter)) return 'failed after'
    if (random.chance(faults.requestLate)) return 'request late'
    if (random.chance(faults.replyLate)) return 'reply late'
    return random.chance(faults.emptyReply) ? 'reply empty' : 'delivered'
  }

  const latencyMs = () => random.between(0, setting.faults.latencyMs)
  const longMs = () => storeTimeoutMs + random.between(-1, leaseMs + 1_000)

  function carry(
    instance: Instance,
    command: Command,
    fate: Fate,
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
  ): void {
    const fail = (where: 'on its way' | 'at the store', at: number) =>
      clock.plan(
        at,
        () => {
          observe({ at: clock.now, type: 'failed', command, where })
          reject(new Error('connection reset'))
        },
        instance,
      )
    const hear = (arrival: Arrival, at: number) =>
      clock.plan(
        at,
        () => {
          if (command.name === 'begin') command.request.heard = arrival
          observe({ at: clock.now, type: 'heard', arrival })
          resolve(arrival.reply)
        },
        instance,
      )
    const hearNothing = (at: number) =>
      clock.plan(
        at,
        () => {
          observe({ at: clock.now, type: 'failed', command, where: 'on its way' })
          resolve(undefined)
        },
        instance,
      )

    function arrive(at: number, took: (arrival: Arrival) => void): void {
      clock.plan(at, () =>
        records.take(
          command,
          (reply, before, after) => {
            const arrival: Arrival = {
              command,
              reply,
              epoch: 0,
              ...(before !== undefined && { before }),
              ...(after !== undefined && { after }),
            }
            observe({ at: clock.now, type: 'arrived', arrival })
            took(arrival)
            // The worst of moments: it claims, but its client will not be there to hear of it.
            if (command.name === 'begin' && random.chance(0.05)) command.request.leave()
          },
          () => {
            tally['unreadable records']++
            command.isHindered = true
            fail('at the store', clock.now + latencyMs())
          },
        ),
      )
    }

    const soon = clock.now + latencyMs()
    const repeats = isTroubled(world) && random.chance(setting.faults.duplicate)
    switch (fate) {
      case 'thrown':
        return
      case 'request lost':
        tally['lost requests']++
        return
      case 'failed before':
        tally['errors before the effect']++
        fail('on its way', soon)
        return
      case 'reply lost':
        tally['lost replies']++
        arrive(soon, () => {})
        break
      case 'failed after':
        tally['errors after the effect']++
        arrive(soon, () => fail('on its way', clock.now + latencyMs()))
        break
      case 'reply empty':
        tally['empty replies']++
        arrive(soon, () => hearNothing(clock.now + latencyMs()))
        break
      case 'request late':
        tally['late requests']++
        arrive(delayed(world, longMs()), (arrival) => hear(arrival, clock.now + latencyMs()))
        break
      case 'reply late':
        tally['late replies']++
        arrive(soon, (arrival) => hear(arrival, delayed(world, longMs())))
        break
      case 'delivered':
        arrive(soon, (arrival) => hear(arrival, clock.now + latencyMs()))
    }
    if (!repeats) return
    tally.duplicates++
    command.isDuplicated = true
    arrive(delayed(world, random.chance(0.5) ? latencyMs() : longMs()), (arrival) => {
      // As a client library does by itself: the second reply is the one that is heard.
      if (fate === 'reply lost') hear(arrival, clock.now + latencyMs())
    })
  }

  return {
    begin: (key, claim) => send('begin', key, claim),
    renew: (key, own) => send('renew', key, own),
    complete: (key, own) => send('complete', key, own),
    release: (key, own) => send('release', key, own),
    step: (key, own) => send('step', key, own),
  }
}
