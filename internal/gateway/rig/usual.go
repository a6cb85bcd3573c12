package rig

// Usual are the tools of most tests, one of each replay class. All go through the proxy.
const Usual = `
tool: charge
description: Charge a card at a target that honours keys.
input:
  type: object
  required: [amount, customer]
  properties:
    amount: {type: integer}
    currency: {type: string, default: usd}
    customer: {type: string}
    memo: {type: string}
    client_ts: {type: string}
http:
  method: POST
  url: PROXY/v1/charges
  credential: provider
  private: [127.0.0.0/8]
  json: {amount: "${args.amount}", currency: "${args.currency}", customer: "${args.customer}", metadata: {}}
metadata: {json: /metadata/idem_key}
volatile: [client_ts]
resource: customer/${args.customer}
on_lost_response:
  class: repeatable_with_key
  key: {header: Idempotency-Key, repeat: returns_original_and_refuses_changed, kept_for: 24h}
  attach_for: 15m
  scope: run
  evidence: the provider of these tests
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 401, 403, 404, 422]}
retry_when: ${status in [429, 503]}
attempts: 5
timeout: TIMEOUT
keep_result: 30d
---
tool: send_email
description: An effect at a target without keys and without look-up.
input:
  type: object
  required: [to]
  properties:
    to: {type: string}
    subject: {type: string}
http:
  method: POST
  url: PROXY/v1/objects/{to}
  credential: provider
  private: [127.0.0.0/8]
  json: {to: "${args.to}"}
resource: mailbox/${args.to}
on_lost_response:
  class: blocked_after_unknown
  attach_for: 15m
  scope: run
done_when: ${status in [200, 201]}
no_effect_when: ${status in [400, 404, 422]}
attempts: 5
timeout: TIMEOUT
keep_result: 30d
---
tool: get_echo
description: A read.
input:
  type: object
  properties:
    customer: {type: string, default: cus_1}
http:
  method: GET
  url: PROXY/v1/echo{?customer}
  credential: provider
  private: [127.0.0.0/8]
on_lost_response:
  class: read_only
  evidence: the provider of these tests
done_when: ${status == 200}
no_effect_when: ${status in [400, 404, 405]}
attempts: 3
timeout: TIMEOUT
`
