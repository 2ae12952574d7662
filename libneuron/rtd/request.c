// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "../common/lock.h"
#include "../common/util.h"
#include "request.h"

static int find_tensor(const struct model *model, enum neuron_tensor_usage usage, const char *name)
{
	for (size_t i = 0; i < model->nr_tensors; i++)
		if (model->tensors[i].usage == usage && !strcmp(model->tensors[i].name, name))
			return (int)i;
	return -1;
}

/* 0, or -errno and what is wrong with a tensor. */
static int bind(struct request *r, enum neuron_tensor_usage usage, const Rtd__Tensor *t,
		const char **wrong)
{
	int i = find_tensor(r->model, usage, t->name), ret;
	struct place *p = i < 0 ? NULL : &r->places[i];

	*wrong = !p ? "the model has no such tensor" :
		 p->given ? "it is there twice" :
		 t->memory && t->data.len ? "it is in the message and in memory" :
		 usage == NEURON_TENSOR_OUTPUT && !t->memory ? "there is no memory for it" :
		 (t->memory ? t->memory->bytes : t->data.len) != r->model->tensors[i].bytes ?
		 "its length is not that of the model" : NULL;
	if (*wrong)
		return -EINVAL;
	p->given = true;
	p->bytes = r->model->tensors[i].bytes;
	if (!t->memory) {
		p->data = t->data.data;
		return 0;
	}
	ret = buffer_find(r->client, t->memory->id, t->memory->offset, p->bytes, &p->buffer);
	*wrong = ret == -ENOENT ? "there is no such memory" : "its memory ends before it does";
	if (ret)
		return ret;
	*wrong = "its memory is sealed against writing";
	p->data = p->buffer->map + t->memory->offset;
	return usage == NEURON_TENSOR_OUTPUT && p->buffer->read_only ? -EINVAL : 0;
}

/* A name as far as it goes into a text; it is the client's, or that of a file. */
struct name {
	char text[64];
};

static struct name readable(const char *name)
{
	struct name n;

	snprintf(n.text, sizeof(n.text), "%s", name);
	for (char *c = n.text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return n;
}

static int bind_all(struct request *r, enum neuron_tensor_usage usage, Rtd__Tensor *const *tensors,
		    size_t nr, char text[128])
{
	const char *what = usage == NEURON_TENSOR_INPUT ? "input" : "output", *wrong;

	for (size_t i = 0; i < nr; i++) {
		int ret = bind(r, usage, tensors[i], &wrong);

		if (ret) {
			snprintf(text, 128, "%s %s: %s", what, readable(tensors[i]->name).text,
				 wrong);
			return ret;
		}
	}
	for (size_t i = 0; i < r->model->nr_tensors; i++)
		if (usage == NEURON_TENSOR_INPUT && r->model->tensors[i].usage == usage &&
		    !r->places[i].given) {
			snprintf(text, 128, "input %s is missing",
				 readable(r->model->tensors[i].name).text);
			return -EINVAL;
		}
	return 0;
}

/* 0 or -errno with what to say. */
static int make(struct call *call, const Rtd__InferRequest *message, struct request **request,
		char text[128])
{
	struct model *model;
	struct request *r;
	int ret;

	GUARD(&rtd_lock);
	if (call->client->gone)
		return -ECANCELED;
	ret = model_find(call->client, message->model, false, &model);
	if (ret) {
		strcpy(text, "there is no such model");
		return ret;
	}
	r = calloc(1, sizeof(*r) + model->nr_tensors * sizeof(r->places[0]));
	if (!r) {
		model_drop(model);
		return -ENOMEM;
	}
	r->model = model;
	r->client = client_hold(call->client);
	r->call = call;
	if (!model->running) {
		strcpy(text, "the model is not running");
		ret = -ESHUTDOWN;
	} else {
		ret = bind_all(r, NEURON_TENSOR_INPUT, message->inputs, message->n_inputs, text) ?:
		      bind_all(r, NEURON_TENSOR_OUTPUT, message->outputs, message->n_outputs,
			       text);
	}
	if (ret)
		request_free(r);
	else
		*request = r;
	return ret;
}

/* Bytes of outputs that go into the answer. */
static uint64_t answer_bytes(const struct request *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->model->nr_tensors; i++)
		if (r->model->tensors[i].usage == NEURON_TENSOR_OUTPUT && !r->places[i].given)
			add_capped(&sum, r->model->tensors[i].bytes);
	return sum;
}

struct request *request_new(struct call *call, const Rtd__InferRequest *message)
{
	struct request *r = NULL;
	char text[128] = "";
	int ret = make(call, message, &r, text);

	if (ret) {
		call_fail_errno(call, ret, text);
		return NULL;
	}
	if (call_hold(call, answer_bytes(r)))
		return r;
	GUARD(&rtd_lock);
	request_free(r);
	return NULL;
}

void request_settle(struct request *r)
{
	for (size_t i = 0; i < r->model->nr_tensors; i++) {
		struct place *p = &r->places[i];

		if (p->buffer)
			buffer_drop(p->buffer);
		else if (r->model->tensors[i].usage == NEURON_TENSOR_OUTPUT)
			free(p->data);
	}
	model_drop(r->model);
	r->model = NULL;
}

void request_free(struct request *r)
{
	if (r->model)
		request_settle(r);
	if (r->response)
		grpc_byte_buffer_destroy(r->response);
	r->client->held -= r->held;
	if (r->id)
		r->client->nr_posted--;
	client_drop(r->client);
	free(r);
}

int request_write(struct request *r)
{
	int ret = 0;

	for (size_t i = 0; i < r->model->nr_tensors && !ret; i++)
		if (r->model->tensors[i].usage == NEURON_TENSOR_INPUT)
			ret = neuron_mem_write(r->slot->mem[i], 0, r->places[i].data,
					       r->places[i].bytes);
	return ret;
}

int request_read(struct request *r)
{
	int ret = 0;

	for (size_t i = 0; i < r->model->nr_tensors && !ret; i++) {
		struct place *p = &r->places[i];

		if (r->model->tensors[i].usage != NEURON_TENSOR_OUTPUT)
			continue;
		if (!p->given) {
			p->bytes = r->model->tensors[i].bytes;
			p->data = malloc(p->bytes);
			if (!p->data)
				return -ENOMEM;
		}
		ret = neuron_mem_read(r->slot->mem[i], 0, p->data, p->bytes);
	}
	return ret;
}

void request_pack(struct request *r)
{
	Rtd__InferResponse response = RTD__INFER_RESPONSE__INIT;
	Rtd__Tensor tensors[MODEL_MAX_TENSORS], *list[MODEL_MAX_TENSORS];
	char *errors[NEURON_NET_MAX_ERRORS];

	response.status = -r->result.status;
	response.errors = errors;
	for (; response.n_errors < r->result.nr_errors; response.n_errors++)
		errors[response.n_errors] = r->result.errors[response.n_errors];
	response.outputs = list;
	for (size_t i = 0; i < r->model->nr_tensors && !r->result.status; i++) {
		Rtd__Tensor *t = &tensors[response.n_outputs];

		if (r->model->tensors[i].usage != NEURON_TENSOR_OUTPUT || r->places[i].given)
			continue;
		rtd__tensor__init(t);
		t->name = (char *)r->model->tensors[i].name;
		t->data.data = r->places[i].data;
		t->data.len = r->places[i].bytes;
		list[response.n_outputs++] = t;
	}
	r->response = call_pack(&response.base);
}

void request_answer(struct request *r)
{
	r->call->held += r->held;
	r->held = 0;
	call_reply_packed(r->call, r->response);
	r->response = NULL;
	r->call = NULL;
}
