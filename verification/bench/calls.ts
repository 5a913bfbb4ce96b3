import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'

/** What a program of the benchmark does when its parent asks for it, by name. */
// biome-ignore lint/suspicious/noExplicitAny: each program has its own calls
type Calls = Readonly<Record<string, (argument: any) => unknown>>

/** A program as its parent sees it. */
export interface Program<Offered extends Calls> {
  call<Name extends keyof Offered & string>(
    name: Name,
    ...argument: Parameters<Offered[Name]>
  ): Promise<Awaited<ReturnType<Offered[Name]>>>
  /** It exits by itself once its parent is gone. */
  end(): Promise<void>
}

interface Question {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

type Reply = { readonly id: number; readonly result?: unknown; readonly error?: string }

/** In the program: answers its parent until the parent is gone. */
export function answerCalls(calls: Calls): void {
  process.on('message', async ({ id, name, argument }: Question) => {
    let reply: Reply
    try {
      reply = { id, result: await calls[name]?.(argument) }
    } catch (error) {
      reply = { id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }
    }
    process.send?.(reply)
  })
  process.on('disconnect', () => process.exit(0))
}

/** In the parent. A call is rejected when the program fails at it, or ends. */
export function programOf<Offered extends Calls>(child: ChildProcess, what: string): Program<Offered> {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>()
  let nextId = 0
  child.on('message', ({ id, result, error }: Reply) => {
    const asker = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) asker?.resolve(result)
    else asker?.reject(new Error(`${what}: ${error}`))
  })
  const exited = once(child, 'exit').then(([code, signal]) => {
    for (const { reject } of waiting.values()) reject(new Error(`${what} ended (${code ?? signal}).`))
    waiting.clear()
  })
  return {
    call: (name, ...[argument]) =>
      new Promise((resolve, reject) => {
        const id = nextId++
        waiting.set(id, { resolve: resolve as (result: unknown) => void, reject })
        child.send({ id, name, argument } satisfies Question, (error) => error && reject(error))
      }),
    async end() {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}
