import { connect, type Socket } from 'node:net'

/** One connection that is kept alive: sends a request, and the next once its answer is there. */
export class Client {
  readonly #socket: Socket
  #received = ''
  /** Of a body whose length is known, how much is still to come. */
  #missing = 0
  #onAnswer: ((status: number) => void) | undefined

  private constructor(socket: Socket, onError: (error: Error) => void) {
    this.#socket = socket.setNoDelay(true).setEncoding('latin1')
    socket.on('data', (text: string) => this.#read(text))
    socket.on('error', onError)
    socket.on('close', () => onError(new Error('The service closed a connection.')))
  }

  static open(port: number, onError: (error: Error) => void): Promise<Client> {
    return new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(new Client(socket, onError)))
      socket.once('error', onError)
    })
  }

  send(request: string, onAnswer: (status: number) => void): void {
    this.#onAnswer = onAnswer
    this.#socket.write(request, 'latin1')
  }

  end(): void {
    this.#socket.removeAllListeners('close').destroy()
  }

  /** The services answer with a length, or in chunks. Of a large body only the length is kept: joining its pieces takes long. */
  #read(text: string): void {
    if (this.#missing > 0) {
      this.#missing -= text.length
      if (this.#missing <= 0) this.#answer()
      return
    }
    this.#received += text
    const headEnd = this.#received.indexOf('\r\n\r\n')
    if (headEnd === -1) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received)?.[1]
    if (length === undefined) {
      if (this.#received.endsWith('0\r\n\r\n')) this.#answer()
      return
    }
    this.#missing = headEnd + 4 + Number(length) - this.#received.length
    if (this.#missing <= 0) this.#answer()
  }

  #answer(): void {
    const status = Number(this.#received.slice(9, 12))
    this.#received = ''
    this.#missing = 0
    this.#onAnswer?.(status)
  }
}
