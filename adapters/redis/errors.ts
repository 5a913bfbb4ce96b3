import type { Buffer } from 'node:buffer'

// Clients word the error of a server in their own ways: most hand `NOSCRIPT No matching script` on, GLIDE makes `An error was signalled by
// the server: - NoScriptError: No matching script` of it, and those over HTTP put it into a message of theirs.

/** Whether the server does not have the script. A wrong yes sends the command once more, which changes nothing. */
export function isNoScript(error: unknown): boolean {
  return listErrorMessages(error).some((message) => /NoScript|No matching script/i.test(message))
}

/** Whether Redis itself refused, by a code in capitals (`NOPERM …`, `ERR …`): errors of a connection have none. */
export function isCommandRefusal(error: unknown): boolean {
  return listErrorMessages(error).some((message) => /(?:^|[:-] )[A-Z]{3,}[ :]|signalled by the server/.test(message))
}

/** Some rejects with a text, or puts the reply behind an error of its own. */
function listErrorMessages(error: unknown): readonly string[] {
  const messages: string[] = []
  let next = error
  while (next !== undefined && next !== null && messages.length < MOST_CAUSES) {
    const { message, cause } = next as { readonly message?: unknown; readonly cause?: unknown }
    messages.push(String(typeof next === 'string' ? next : message))
    next = cause
  }
  return messages
}

const MOST_CAUSES = 5

/** Cuts a message where it quotes the command: clients over HTTP do, and that is a key and the answer to a payment. */
export function redactArguments(error: unknown, sent: readonly (string | Buffer)[]): unknown {
  if (!(error instanceof Error)) return error
  const { message, stack } = error
  const quoted = sent.filter((each) => typeof each === 'string' && each.length >= FEWEST_CHARACTERS) as string[]
  const places = quoted.map((each) => message.indexOf(each)).filter((at) => at >= 0)
  if (places.length === 0) return error
  const told = `${message.slice(0, Math.min(...places))}… (the command is left out)`
  Reflect.set(error, 'message', told)
  Reflect.set(
    error,
    'stack',
    stack?.replace(message, () => told),
  )
  return error
}

/** Anything shorter may be part of any word. */
const FEWEST_CHARACTERS = 8
