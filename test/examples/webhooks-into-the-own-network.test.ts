import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isLoopback, isPublic } from '../../examples/payments/reachable-address.js'
import { startSubscriber } from './subscriber.js'
import { startWithWebhooks } from './webhooks-service.js'

// Whoever may subscribe could let the example send requests to whatever it can reach: other services of its machine, of its
// network, the metadata of its cloud.

describe('an event for a subscription on this machine', () => {
  test.each([
    ['an address', (port: string) => `http://127.0.0.1:${port}`],
    ['an address in another spelling', (port: string) => `http://0x7f.1:${port}`],
    ['an address of IPv6', (port: string) => `http://[::1]:${port}`],
    ['an address of IPv4 inside IPv6', (port: string) => `http://[::ffff:127.0.0.1]:${port}`],
    ['a name', (port: string) => `http://localhost:${port}`],
  ])('that is %s is not sent, nor tried again, and the log says why', async (_kind, urlFor) => {
    const service = await startWithWebhooks({}, { firstPauseMs: 1, mayReachLoopback: false })
    const subscriber = await startSubscriber()
    await service.subscribe(urlFor(new URL(subscriber.url).port))
    await service.fire()
    const [line] = await service.logged('webhook refused')
    expect(line).toMatchObject({ level: 50, tries: 1, reason: expect.stringContaining('DEMO_WEBHOOK_LOOPBACK=true') })
    expect(await service.sender.stop()).toBe(0)
    expect(subscriber.delivered).toEqual([])
  })

  test.each(['127.0.0.1', 'localhost'])('is sent to %s where the demo allows it', async (host) => {
    const service = await startWithWebhooks({}, { mayReachLoopback: true })
    const subscriber = await startSubscriber()
    await service.subscribe(`http://${host}:${new URL(subscriber.url).port}`)
    await service.fire()
    expect(await subscriber.reached(1)).toHaveLength(1)
  })

  test('follows no redirect', async () => {
    const service = await startWithWebhooks()
    const subscriber = await startSubscriber()
    const redirecting = createServer((_req, res) => res.writeHead(307, { Location: subscriber.url }).end())
    await once(redirecting.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => void redirecting.close())
    await service.subscribe(`http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`)
    await service.fire()
    expect((await service.logged('webhook failed'))[0]).toMatchObject({ reason: 'status 307' })
    expect(subscriber.delivered).toEqual([])
  })
})

describe('an address is public', () => {
  test.each([
    '8.8.8.8',
    '1.1.1.1',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '2606:4700::1',
  ])('%s', (address) => expect([isPublic(address), isLoopback(address)]).toEqual([true, false]))
})

describe('an address is not public', () => {
  test.each([
    ...['0.0.0.0', '10.0.0.1', '10.255.255.255', '100.64.0.1', '169.254.169.254', '172.16.0.1', '172.31.255.255'],
    ...['192.0.2.1', '192.168.0.1', '192.168.255.255', '198.18.0.1', '224.0.0.1', '240.0.0.1', '255.255.255.255'],
    ...['::', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd12:3456::1', 'ff02::1', '::ffff:8.8.8.8', '::ffff:10.0.0.1'],
    ...['64:ff9b::a00:1', '2001::1', '2001:db8::1', '2002:7f00:1::1', '', 'localhost', '127.1', '8.8.8.8.8'],
  ])('%s', (address) => expect([isPublic(address), isLoopback(address)]).toEqual([false, false]))

  test.each(['127.0.0.1', '127.255.255.255', '::1'])('%s, but this machine’s', (address) =>
    expect([isPublic(address), isLoopback(address)]).toEqual([false, true]),
  )
})
