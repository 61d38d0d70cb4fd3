/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams between daemons: a message 240..249 and 16 bytes of authentication.
 *
 *   magic u16 | version u8 | type u8 | key u32 | start u32 | path u32 | seq u64 | ... | tag
 *
 * The tag is GMAC (AES-256-GCM without plain text) over everything before it, with the nonce
 * path || seq (12 bytes, as they stand in the frame) and a key for each direction: exporter of the
 * TLS session (RFC 5705, label HC_KEY_LABEL), context
 *
 *   node id of the sender | of the receiver | start of the sender u32 | of the receiver u32
 *
 * So a frame cannot be sent back to its sender, to another node, or to a later daemon. With
 * security = none the key is SHA-256 of the label, the context and the two cookies: no secret.
 * The sequence number goes up with each frame of a key and path, of whatever type; the receiver
 * takes each once. Source of the construction: NIST SP 800-38D.
 */
#ifndef HC_DATAGRAM_H
#define HC_DATAGRAM_H

#define HC_DATAGRAM_MAGIC   0x6862u
#define HC_DATAGRAM_VERSION 1u
#define HC_DATAGRAM_HEAD    24u /* bytes before what the types differ in */
#define HC_DATAGRAM_TAG     16u
#define HC_BEAT_BYTES       60u /* without the tag; at most 64 */
#define HC_PROBE_BYTES      40u /* without padding and tag; also of an answer */
#define HC_DATAGRAM_MAX     65507u
#define HC_KEY_LABEL        "EXPORTER-hcomm-beat"
#define HC_KEY_BYTES        32u
#define HC_KEY_CONTEXT      40u
#define HC_DATAGRAM_AT_TYPE 3u /* offsets, for who authenticates without decoding */
#define HC_DATAGRAM_AT_KEY  4u
#define HC_DATAGRAM_AT_PATH 12u

/* Flags of a beat. */
#define HC_BEAT_HEARS   1u /* the sender hears the receiver on this path, within its window */
#define HC_BEAT_ASKS    2u /* answer with a beat at once (urgent) */
#define HC_BEAT_ANSWERS 4u /* such an answer: it asks for none */
#define HC_BEAT_HOLDS   8u /* the sender is about to stop and come back */

#define HC_PEER_MAGIC     0x68636f6du
#define HC_PEER_FRAME_MAX (1024u * 1024u) /* bytes of a control message with its header */

#endif
