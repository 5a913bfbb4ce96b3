import { answer } from './app.mjs'

export default {
  async fetch(request, env, context) {
    try {
      return await answer(request, env, context)
    } catch {
      return new Response('failed', { status: 500 })
    }
  },
}
