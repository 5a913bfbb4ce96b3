import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'once-per-key/client'
import { useKeyFile } from 'once-per-key/client/node'
import { expect, onTestFinished, test } from 'vitest'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'made', 'when needed')
}

/** A client as a process has it, and the keys that it sent. */
function clientOver(folder: string, answer: () => Promise<Response>) {
  const sent: (string | null)[] = []
  const client = createClient({
    keys: useKeyFile(folder),
    totalTimeoutMs: 1_000,
    fetch: async (input, init) => {
      sent.push(new Request(input, init).headers.get('Idempotency-Key'))
      return answer()
    },
  })
  const forget = () => client.forget('order-1')
  return {
    sent,
    forget,
    send: () => client.send('order-1', 'http://bank.test/payouts', { method: 'POST', body: '{}' }),
  }
}

test('a process that goes on where another one died sends its key; once it is forgotten, nothing is left', async () => {
  const folder = newFolder()
  const dying = clientOver(folder, () => Promise.reject(new Error('the process dies')))
  expect(await dying.send()).toMatchObject({ outcome: 'unknown' })
  const next = clientOver(folder, async () => Response.json({ paid: true }, { status: 201 }))
  expect(await next.send()).toMatchObject({ outcome: 'done' })
  expect(new Set([...dying.sent, ...next.sent]).size).toBe(1)
  await next.forget()
  expect(readdirSync(folder)).toEqual([])
})

test('of many that begin one operation at once, all send the key of the first', async () => {
  const folder = newFolder()
  const storages = Array.from({ length: 20 }, () => useKeyFile(folder))
  await Promise.all(storages.map((storage, i) => storage.setItem('once-per-key:order-1', `key-${i}`)))
  const keys = await Promise.all(storages.map((storage) => storage.getItem('once-per-key:order-1')))
  expect(new Set(keys).size).toBe(1)
  expect(readdirSync(folder)).toHaveLength(1)
})

test('operations of any name are apart, and their files are for their owner alone', async () => {
  const folder = newFolder()
  const storage = useKeyFile(folder)
  const names = ['a/../b', 'b', 'ü'.repeat(500)]
  for (const name of names) await storage.setItem(name, `key of ${name}`)
  for (const name of names) expect(await storage.getItem(name)).toBe(`key of ${name}`)
  await storage.removeItem('b')
  expect(await storage.getItem('b')).toBeNull()
  expect(await storage.getItem('a/../b')).toBe('key of a/../b')
  for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077).toBe(0)
})

test('where a key cannot be stored, nothing is sent', async () => {
  const folder = join(newFolder(), '..', 'a file')
  rmSync(join(folder, '..'), { recursive: true, force: true })
  writeFileSync(join(folder, '..'), '')
  const { send, sent } = clientOver(folder, async () => new Response())
  await expect(send()).rejects.toMatchObject({ code: 'ENOTDIR' })
  expect(sent).toEqual([])
})

test('of two processes over one folder, a refusal to one leaves the key that the other one uses', async () => {
  const folder = newFolder()
  const going = clientOver(folder, () => Promise.reject(new Error('the reply is lost')))
  const refused = clientOver(folder, async () => new Response(null, { status: 401 }))
  await going.send()
  expect(await refused.send()).toMatchObject({ outcome: 'unknown' })
  const next = clientOver(folder, async () => new Response(null, { status: 201 }))
  await next.send()
  expect(new Set([...going.sent, ...refused.sent, ...next.sent]).size).toBe(1)
  await next.forget()
  expect(readdirSync(folder)).toEqual([])
})
