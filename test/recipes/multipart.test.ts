import type { RequestHandler } from 'express'
import { MemoryStore } from 'once-per-key/memory'
import { expect, test } from 'vitest'
import { documentsApp } from '../../examples/recipes/multipart.js'
import { served } from './served.js'

const path = '/documents'

async function start() {
  const documents: string[] = []
  const addDocument: RequestHandler = (req, res) => {
    documents.push(`${req.body.purpose}: ${req.file?.buffer}`)
    res.status(201).json({ id: documents.length })
  }
  const { post } = await served(documentsApp({ store: new MemoryStore(), addDocument }))
  return { post, documents }
}

/** A new form each time, with a boundary of its own. */
function form({
  purpose = 'proof of address',
  text = 'a bill',
  name = 'bill.txt',
  type = 'text/plain',
} = {}): FormData {
  const body = new FormData()
  body.append('purpose', purpose)
  body.append('document', new Blob([text], { type }), name)
  return body
}

test('a form that is sent again is the same request, whatever its boundary', async () => {
  const { post, documents } = await start()
  const first = await post({ path, body: form() })
  const retry = await post({ path, body: form() })
  expect(first).toMatchObject({ status: 201, replayed: false })
  expect(retry).toMatchObject({ status: 201, replayed: true, text: first.text })
  expect(documents).toEqual(['proof of address: a bill'])
})

test.each([
  { name: 'another field', body: form({ purpose: 'identity' }) },
  { name: 'another file', body: form({ text: 'another bill' }) },
  { name: 'another name of the file', body: form({ name: 'other.txt' }) },
  { name: 'another type of the file', body: form({ type: 'text/html' }) },
  { name: 'no file', body: new FormData() },
  { name: 'another query', body: form(), path: '/documents?draft=1' },
])('$name is another request', async ({ body, path: other = path }) => {
  const { post, documents } = await start()
  await post({ path, body: form() })
  const refused = await post({ path: other, body })
  expect([refused.status, JSON.parse(refused.text).code]).toEqual([409, 'mismatched'])
  expect(documents).toHaveLength(1)
})

test('a file that is too large is refused before the key is claimed', async () => {
  const { post, documents } = await start()
  expect((await post({ path, body: form({ text: 'x'.repeat(5_000_001) }) })).status).toBe(413)
  expect(await post({ path, body: form() })).toMatchObject({ status: 201, replayed: false })
  expect(documents).toHaveLength(1)
})
