// The laws on binding.ts, for Vitest; those of a binding of your own look the same.
import { type BindingApp, type BindingReply, bindingLaws, bindOptions, type SendToBinding } from 'once-per-key/testing'
import { test } from 'vitest'
import { bound } from './binding.js'

type Handle = Parameters<typeof bound>[0]

bindingLaws(test, (app) => serve(app, bound), { joinsHeaderLines: true, hasNoErrorHandler: true })

/** The application of one law, in the words of the framework. A framework with a server gives its `port` instead. */
export function serve(app: BindingApp, binding: typeof bound) {
  const handler: Handle = async (request, idempotency) => {
    const bytes = async () => new Uint8Array(await request.arrayBuffer())
    return responseOf(await app.handler({ idempotency, json: () => request.json(), bytes }))
  }
  const options = bindOptions(app, (request: Request, name) => request.headers.get(name))
  const handle = binding(handler, options)
  return { send: sendTo(app.isProtected ? handle : handler), idle: handle.idle }
}

function sendTo(handle: Handle): SendToBinding {
  return async ({ target, headers, ...init }) => {
    const lines = headers.map(([name, value]): [string, string] => [name, value])
    const request = new Request(new URL(target, 'http://localhost'), { ...init, headers: lines })
    const response = await (async () => handle(request))().catch(() => new Response(null, { status: 500 }))
    return {
      status: response.status,
      headers: [...response.headers],
      body: new Uint8Array(await response.arrayBuffer()),
    }
  }
}

function responseOf({ status = 200, headers = [], json, text, bytes, redirect }: BindingReply): Response {
  const lines = new Headers(headers.map(([name, value]): [string, string] => [name, value]))
  if (redirect !== undefined) {
    lines.set('Location', redirect)
    return new Response(null, { status: status === 200 ? 302 : status, headers: lines })
  }
  if (json !== undefined) return Response.json(json, { status, headers: lines })
  return new Response(bytes === undefined ? (text ?? null) : new Uint8Array(bytes), { status, headers: lines })
}
